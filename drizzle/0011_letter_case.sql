ALTER TABLE `aliases` ADD `small_path` text DEFAULT '' NOT NULL;--> statement-breakpoint
-- Aliases in any case are in small letters already. Of exact ones, SQLite knows A to Z only: one with
-- another capital letter is not compared with later aliases that differ from it in letter case only.
UPDATE `aliases` SET `small_path` = lower(`path`);--> statement-breakpoint
CREATE INDEX `aliases_small` ON `aliases` (`domain_id`,`small_path`);--> statement-breakpoint
ALTER TABLE `links` ADD `typed_code` text;
