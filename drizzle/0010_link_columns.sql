-- The properties of a link become columns of `links`. `link_tags` remains as an index of `links.tags`.
ALTER TABLE `links` ADD `title` text;
--> statement-breakpoint
ALTER TABLE `links` ADD `tags` text;
--> statement-breakpoint
ALTER TABLE `links` ADD `note` text;
--> statement-breakpoint
ALTER TABLE `links` ADD `paused` integer DEFAULT 0 NOT NULL;
--> statement-breakpoint
ALTER TABLE `links` ADD `starts_at` integer;
--> statement-breakpoint
ALTER TABLE `links` ADD `expires_at` integer;
--> statement-breakpoint
ALTER TABLE `links` ADD `max_hits` integer;
--> statement-breakpoint
ALTER TABLE `links` ADD `expired_url` text;
--> statement-breakpoint
ALTER TABLE `links` ADD `forward_query` integer DEFAULT 0 NOT NULL;
--> statement-breakpoint
ALTER TABLE `links` ADD `delete_at` integer;
--> statement-breakpoint
UPDATE `links` SET
	`title` = p.`title`,
	`tags` = nullif((SELECT json_group_array(`tag` ORDER BY `tag`) FROM `link_tags`
		WHERE `link_tags`.`link_id` = `links`.`id`), '[]'),
	`note` = p.`note`,
	`paused` = p.`paused_at` IS NOT NULL,
	`starts_at` = p.`starts_at`,
	`expires_at` = p.`expires_at`,
	`max_hits` = p.`max_hits`,
	`expired_url` = p.`expired_url`,
	`forward_query` = p.`forward_query`,
	`delete_at` = p.`delete_at`
FROM `link_properties` AS p WHERE p.`link_id` = `links`.`id`;
--> statement-breakpoint
DROP TABLE `link_properties`;
--> statement-breakpoint
CREATE INDEX `links_delete` ON `links` (`delete_at`) WHERE delete_at IS NOT NULL;
--> statement-breakpoint
-- Lists count a link again when a text has changed that searches and filters read.
DROP TRIGGER link_changes_url;
--> statement-breakpoint
CREATE TRIGGER link_changes_texts AFTER UPDATE OF url, title, tags, note ON links
WHEN old.url IS NOT new.url OR old.title IS NOT new.title OR old.tags IS NOT new.tags
	OR old.note IS NOT new.note
BEGIN
	INSERT INTO link_changes (account_id, link_id, is_deleted) VALUES (new.account_id, new.id, 0);
	DELETE FROM link_changes WHERE seq <= (SELECT max(seq) FROM link_changes) - 4096;
END;
--> statement-breakpoint
CREATE TRIGGER link_tags_changed AFTER UPDATE OF tags ON links WHEN old.tags IS NOT new.tags
BEGIN
	DELETE FROM link_tags WHERE link_id = old.id;
	INSERT INTO link_tags (account_id, tag, link_id)
		SELECT new.account_id, value, new.id FROM json_each(new.tags);
END;
--> statement-breakpoint
CREATE TRIGGER link_tags_deleted AFTER DELETE ON links WHEN old.tags IS NOT NULL
BEGIN
	DELETE FROM link_tags WHERE link_id = old.id;
END;
