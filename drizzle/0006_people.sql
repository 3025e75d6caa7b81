CREATE TABLE `people` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`email` text NOT NULL,
	`created_at` integer NOT NULL,
	`account_id` integer NOT NULL,
	`password_hash` text,
	`password_changed_at` integer,
	`is_owner` integer DEFAULT 0 NOT NULL,
	`totp_secret` blob,
	`totp_enabled_at` integer,
	`totp_last_step` integer
);
--> statement-breakpoint
CREATE UNIQUE INDEX `people_email` ON `people` (lower("email"));--> statement-breakpoint
CREATE TABLE `memberships` (
	`account_id` integer NOT NULL,
	`person_id` integer NOT NULL,
	`role` text NOT NULL,
	`created_at` integer NOT NULL,
	PRIMARY KEY(`account_id`, `person_id`)
);
--> statement-breakpoint
CREATE INDEX `memberships_person` ON `memberships` (`person_id`);--> statement-breakpoint
INSERT INTO `people` SELECT `id`, `email`, `created_at`, `id`, `password_hash`, `password_changed_at`,
	`is_owner`, `totp_secret`, `totp_enabled_at`, `totp_last_step`
FROM `accounts` WHERE `deleted_at` IS NULL;--> statement-breakpoint
-- No person gets the id of an account that was deleted: browsers may hold a token for it.
DELETE FROM sqlite_sequence WHERE name = 'people';--> statement-breakpoint
INSERT INTO sqlite_sequence (name, seq)
SELECT 'people', seq FROM sqlite_sequence WHERE name = 'accounts';--> statement-breakpoint
INSERT INTO `memberships` SELECT `id`, `id`, 'admin', `created_at`
FROM `accounts` WHERE `deleted_at` IS NULL;--> statement-breakpoint
DROP INDEX `accounts_email`;--> statement-breakpoint
ALTER TABLE `accounts` RENAME COLUMN `email` TO `name`;--> statement-breakpoint
ALTER TABLE `accounts` DROP COLUMN `password_hash`;--> statement-breakpoint
ALTER TABLE `accounts` DROP COLUMN `password_changed_at`;--> statement-breakpoint
ALTER TABLE `accounts` DROP COLUMN `is_owner`;--> statement-breakpoint
ALTER TABLE `accounts` DROP COLUMN `totp_secret`;--> statement-breakpoint
ALTER TABLE `accounts` DROP COLUMN `totp_enabled_at`;--> statement-breakpoint
ALTER TABLE `accounts` DROP COLUMN `totp_last_step`;--> statement-breakpoint
ALTER TABLE `api_keys` ADD `created_by` text;--> statement-breakpoint
ALTER TABLE `sessions` ADD `person_id` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
UPDATE `sessions` SET `person_id` = `account_id`;--> statement-breakpoint
CREATE INDEX `sessions_person` ON `sessions` (`person_id`);--> statement-breakpoint
DROP INDEX `recovery_codes_account`;--> statement-breakpoint
ALTER TABLE `recovery_codes` RENAME COLUMN `account_id` TO `person_id`;--> statement-breakpoint
CREATE INDEX `recovery_codes_person` ON `recovery_codes` (`person_id`);--> statement-breakpoint
ALTER TABLE `one_time_links` RENAME COLUMN `account_id` TO `person_id`;--> statement-breakpoint
ALTER TABLE `one_time_links` ADD `account_id` integer;--> statement-breakpoint
ALTER TABLE `one_time_links` ADD `role` text;
