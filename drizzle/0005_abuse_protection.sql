CREATE TABLE `disabled_codes` (
	`code` text PRIMARY KEY NOT NULL,
	`reason` text NOT NULL,
	`disabled_at` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `recovery_codes` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`account_id` integer NOT NULL,
	`hash` blob NOT NULL,
	`used_at` integer
);
--> statement-breakpoint
CREATE INDEX `recovery_codes_account` ON `recovery_codes` (`account_id`);--> statement-breakpoint
ALTER TABLE `accounts` ADD `url_bytes` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE `accounts` ADD `links_disabled_at` integer;--> statement-breakpoint
ALTER TABLE `accounts` ADD `totp_secret` blob;--> statement-breakpoint
ALTER TABLE `accounts` ADD `totp_enabled_at` integer;--> statement-breakpoint
ALTER TABLE `accounts` ADD `totp_last_step` integer;--> statement-breakpoint
ALTER TABLE `sessions` ADD `proved_at` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
UPDATE `accounts` SET `url_bytes` = (SELECT coalesce(sum(octet_length(`url`)), 0) FROM `links` WHERE `account_id` = `accounts`.`id`);
