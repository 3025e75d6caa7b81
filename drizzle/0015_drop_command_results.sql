DROP TABLE `command_results`;--> statement-breakpoint
DELETE FROM `settings` WHERE `name` = 'moderation_changes';
