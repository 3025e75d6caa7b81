CREATE TABLE `webhook_attempts` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`webhook_id` integer NOT NULL,
	`type` text NOT NULL,
	`sequence` integer NOT NULL,
	`attempt` integer NOT NULL,
	`status` integer,
	`error` text,
	`ms` integer NOT NULL,
	`at` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `webhook_attempts_webhook` ON `webhook_attempts` (`webhook_id`,`id`);--> statement-breakpoint
CREATE TABLE `webhook_deleted_links` (
	`id` integer PRIMARY KEY NOT NULL,
	`snapshot` text NOT NULL
);
--> statement-breakpoint
CREATE TABLE `webhook_deliveries` (
	`webhook_id` integer NOT NULL,
	`event_id` integer NOT NULL,
	`origin` text NOT NULL,
	`attempts` integer DEFAULT 0 NOT NULL,
	`next_at` integer NOT NULL,
	`dropped` integer DEFAULT 0 NOT NULL,
	PRIMARY KEY(`event_id`, `webhook_id`)
) WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `webhook_deliveries_next` ON `webhook_deliveries` (`webhook_id`,`next_at`,`event_id`);--> statement-breakpoint
CREATE TABLE `webhook_events` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`account_id` integer NOT NULL,
	`sequence` integer NOT NULL,
	`type` text NOT NULL,
	`body` text NOT NULL,
	`more` integer DEFAULT 0 NOT NULL,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `webhook_events_account` ON `webhook_events` (`account_id`,`id`);--> statement-breakpoint
CREATE TABLE `webhook_queues` (
	`account_id` integer PRIMARY KEY NOT NULL,
	`sequence` integer DEFAULT 0 NOT NULL,
	`deliveries` integer DEFAULT 0 NOT NULL,
	`bytes` integer DEFAULT 0 NOT NULL
);
--> statement-breakpoint
CREATE TABLE `webhooks` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`account_id` integer NOT NULL,
	`url` text NOT NULL,
	`secret` blob NOT NULL,
	`old_secret` blob,
	`old_ends_at` integer,
	`events` text NOT NULL,
	`enabled` integer DEFAULT 1 NOT NULL,
	`failing_since` integer,
	`disabled_reason` text,
	`dropped` integer DEFAULT 0 NOT NULL,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `webhooks_account` ON `webhooks` (`account_id`);
--> statement-breakpoint
CREATE TRIGGER webhook_deleted_links_added BEFORE DELETE ON links
WHEN EXISTS (SELECT 1 FROM webhooks WHERE account_id = old.account_id AND enabled = 1)
BEGIN
	INSERT OR REPLACE INTO webhook_deleted_links (id, snapshot) VALUES (old.id, json_object(
		'code', old.code, 'domain', coalesce(old.domain_id, 0),
		'url', iif(old.password IS NULL, old.url, NULL), 'title', old.title,
		'tags', json(coalesce(old.tags, '[]')), 'created_at', old.created_at,
		'hit_count', coalesce((SELECT count FROM hits WHERE link_id = old.id), 0)));
END;
