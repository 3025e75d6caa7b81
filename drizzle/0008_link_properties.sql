CREATE TABLE `link_properties` (
	`link_id` integer PRIMARY KEY NOT NULL,
	`title` text,
	`note` text,
	`paused_at` integer,
	`starts_at` integer,
	`expires_at` integer,
	`max_hits` integer,
	`expired_url` text,
	`forward_query` integer DEFAULT 0 NOT NULL,
	`delete_at` integer
);
--> statement-breakpoint
CREATE INDEX `link_properties_delete` ON `link_properties` (`delete_at`) WHERE delete_at IS NOT NULL;
--> statement-breakpoint
CREATE TABLE `link_tags` (
	`account_id` integer NOT NULL,
	`tag` text NOT NULL,
	`link_id` integer NOT NULL,
	PRIMARY KEY(`account_id`, `tag`, `link_id`)
) WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `link_tags_link` ON `link_tags` (`link_id`);
--> statement-breakpoint
CREATE TABLE `qr_logos` (
	`account_id` integer PRIMARY KEY NOT NULL,
	`type` text NOT NULL,
	`content` blob NOT NULL,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `qr_presets` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`account_id` integer NOT NULL,
	`name` text NOT NULL,
	`options` text NOT NULL,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `qr_presets_name` ON `qr_presets` (`account_id`,`name`);
--> statement-breakpoint
ALTER TABLE `accounts` ADD `time_zone` text;
--> statement-breakpoint
ALTER TABLE `api_keys` ADD `name` text;
--> statement-breakpoint
ALTER TABLE `api_keys` ADD `scope` text DEFAULT 'write' NOT NULL;
--> statement-breakpoint
ALTER TABLE `sessions` ADD `is_long` integer DEFAULT 0 NOT NULL;