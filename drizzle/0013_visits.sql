CREATE TABLE `visit_batches` (
	`host` text PRIMARY KEY NOT NULL,
	`batch` text NOT NULL
);
--> statement-breakpoint
CREATE TABLE `visits_by_day` (
	`scope` integer NOT NULL,
	`id` integer NOT NULL,
	`day` integer NOT NULL,
	`parts` blob NOT NULL,
	PRIMARY KEY(`scope`, `id`, `day`)
) WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `visits_by_day_day` ON `visits_by_day` (`day`);
