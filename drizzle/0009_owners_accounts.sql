ALTER TABLE `accounts` ADD `is_owner` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
-- Until now the first member decided. An owner who joined later, and has become the first one because
-- others have left, has another id than the account.
UPDATE `accounts` SET `is_owner` = 1 WHERE `id` IN (
	SELECT `memberships`.`account_id` FROM `memberships` JOIN `people` ON `people`.`id` = `person_id`
	WHERE `memberships`.`account_id` = `person_id` AND `people`.`is_owner` = 1);
