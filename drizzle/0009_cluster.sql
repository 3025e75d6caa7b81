CREATE TABLE `command_results` (
	`id` text PRIMARY KEY NOT NULL,
	`results` text NOT NULL
);
--> statement-breakpoint
CREATE TABLE `hit_positions` (
	`host` text NOT NULL,
	`journal_id` text NOT NULL,
	`position` integer NOT NULL,
	PRIMARY KEY(`host`, `journal_id`)
);
--> statement-breakpoint
CREATE TABLE `host_settings` (
	`name` text PRIMARY KEY NOT NULL,
	`value` text NOT NULL
);
--> statement-breakpoint
CREATE TABLE `log_position` (
	`id` integer PRIMARY KEY NOT NULL,
	`cluster` text NOT NULL,
	`seq` integer NOT NULL,
	`chain` blob NOT NULL,
	`digest` text NOT NULL
);
--> statement-breakpoint
INSERT INTO `host_settings` SELECT `name`, `value` FROM `settings` WHERE `name` IN ('qr_base_url', 'last_write_probe');
--> statement-breakpoint
DELETE FROM `settings` WHERE `name` IN ('qr_base_url', 'last_write_probe');
