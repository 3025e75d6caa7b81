CREATE TABLE `accounts` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`email` text NOT NULL,
	`plan` text NOT NULL,
	`link_count` integer DEFAULT 0 NOT NULL,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `accounts_email` ON `accounts` (lower("email"));--> statement-breakpoint
CREATE TABLE `api_keys` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`account_id` integer NOT NULL,
	`hash` blob NOT NULL,
	`last_four` text NOT NULL,
	`created_at` integer NOT NULL,
	`ends_at` integer
);
--> statement-breakpoint
CREATE UNIQUE INDEX `api_keys_hash` ON `api_keys` (`hash`);--> statement-breakpoint
CREATE INDEX `api_keys_account` ON `api_keys` (`account_id`);--> statement-breakpoint
CREATE TABLE `hit_totals` (
	`id` integer PRIMARY KEY NOT NULL,
	`journal_id` text NOT NULL,
	`position` integer NOT NULL,
	`redirects` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `hits` (
	`link_id` integer PRIMARY KEY NOT NULL,
	`count` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `links` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`code` text NOT NULL,
	`account_id` integer NOT NULL,
	`url` text,
	`url_key` blob,
	`passcode_hash` blob NOT NULL,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `links_code` ON `links` (`code`);--> statement-breakpoint
CREATE INDEX `links_account` ON `links` (`account_id`,`id`);--> statement-breakpoint
CREATE INDEX `links_url` ON `links` (`account_id`,`url_key`) WHERE url_key IS NOT NULL;--> statement-breakpoint
CREATE TABLE `settings` (
	`name` text PRIMARY KEY NOT NULL,
	`value` text NOT NULL
);
