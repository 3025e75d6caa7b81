CREATE TABLE `account_hits` (
	`account_id` integer PRIMARY KEY NOT NULL,
	`count` integer NOT NULL
);
--> statement-breakpoint
-- Marks lie in the order of time: those of the current hour are written side by side, and the
-- oldest are removed from the front.
CREATE TABLE `hit_days` (
	`day` integer NOT NULL,
	`link_id` integer NOT NULL,
	`first_hour` integer NOT NULL,
	`count` integer NOT NULL,
	PRIMARY KEY(`day`, `link_id`)
) WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `hit_hours` (
	`hour` integer NOT NULL,
	`link_id` integer NOT NULL,
	`count` integer NOT NULL,
	PRIMARY KEY(`hour`, `link_id`)
) WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `account_hit_days` (
	`day` integer NOT NULL,
	`account_id` integer NOT NULL,
	`first_hour` integer NOT NULL,
	`count` integer NOT NULL,
	PRIMARY KEY(`day`, `account_id`)
) WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `account_hit_hours` (
	`hour` integer NOT NULL,
	`account_id` integer NOT NULL,
	`count` integer NOT NULL,
	PRIMARY KEY(`hour`, `account_id`)
) WITHOUT ROWID;
--> statement-breakpoint
-- A flush learns a link's account from the row that it changes anyway.
CREATE TABLE `hits_with_account` (
	`link_id` integer PRIMARY KEY NOT NULL,
	`account_id` integer NOT NULL,
	`count` integer NOT NULL
);
--> statement-breakpoint
INSERT INTO `hits_with_account` SELECT link_id, account_id, count FROM hits JOIN links ON id = link_id ORDER BY link_id;
--> statement-breakpoint
DROP TABLE `hits`;
--> statement-breakpoint
ALTER TABLE `hits_with_account` RENAME TO `hits`;
--> statement-breakpoint
INSERT INTO `account_hits` SELECT account_id, sum(count) FROM hits GROUP BY account_id;
--> statement-breakpoint
ALTER TABLE `hit_totals` ADD `hour` integer DEFAULT 0 NOT NULL;
