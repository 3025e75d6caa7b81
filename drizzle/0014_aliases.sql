CREATE TABLE `aliases` (
	`path` text PRIMARY KEY NOT NULL,
	`link_id` integer NOT NULL,
	`folded` text,
	`any_case` integer DEFAULT 0 NOT NULL
) WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `aliases_link` ON `aliases` (`link_id`);
--> statement-breakpoint
CREATE INDEX `aliases_folded` ON `aliases` (`folded`) WHERE folded IS NOT NULL;
--> statement-breakpoint
ALTER TABLE `hit_totals` ADD `imported` integer DEFAULT 0 NOT NULL;
--> statement-breakpoint
ALTER TABLE `hits` ADD `imported` integer DEFAULT 0 NOT NULL;
