CREATE TABLE `link_event_links` (
	`event_id` integer NOT NULL,
	`link_id` integer NOT NULL,
	`last_link` integer NOT NULL,
	PRIMARY KEY(`event_id`, `link_id`)
) WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `link_event_links_link` ON `link_event_links` (`link_id`);
--> statement-breakpoint
CREATE INDEX `link_event_links_range` ON `link_event_links` (`link_id`) WHERE last_link > link_id;
--> statement-breakpoint
CREATE TABLE `link_events` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`link_id` integer,
	`account_id` integer NOT NULL,
	`at` integer NOT NULL,
	`kind` text NOT NULL,
	`actor_kind` text NOT NULL,
	`actor` text,
	`before` text,
	`after` text,
	`links` integer DEFAULT 1 NOT NULL
);
--> statement-breakpoint
CREATE INDEX `link_events_account` ON `link_events` (`account_id`);
--> statement-breakpoint
CREATE INDEX `link_events_link` ON `link_events` (`link_id`) WHERE link_id IS NOT NULL;
--> statement-breakpoint
CREATE TRIGGER link_events_deleted AFTER DELETE ON link_events WHEN old.link_id IS NULL BEGIN
	DELETE FROM link_event_links WHERE event_id = old.id;
END;
