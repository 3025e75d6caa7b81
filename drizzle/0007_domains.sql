CREATE TABLE `domains` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`host` text NOT NULL,
	`account_id` integer,
	`access` text NOT NULL,
	`codes` text NOT NULL,
	`root_url` text,
	`not_found_url` text,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `domains_host` ON `domains` (`host`);--> statement-breakpoint
-- A path can be an alias on each domain. Those of before are aliases on the primary one, 0.
CREATE TABLE `new_aliases` (
	`domain_id` integer DEFAULT 0 NOT NULL,
	`path` text NOT NULL,
	`link_id` integer NOT NULL,
	`folded` text,
	`any_case` integer DEFAULT 0 NOT NULL,
	`position` integer DEFAULT 0 NOT NULL,
	`displayed` integer DEFAULT 0 NOT NULL,
	PRIMARY KEY(`domain_id`, `path`)
) WITHOUT ROWID;
--> statement-breakpoint
INSERT INTO `new_aliases` (`path`, `link_id`, `folded`, `any_case`, `position`, `displayed`)
SELECT `path`, `link_id`, `folded`, `any_case`, `position`, `displayed` FROM `aliases`;
--> statement-breakpoint
DROP TABLE `aliases`;--> statement-breakpoint
ALTER TABLE `new_aliases` RENAME TO `aliases`;--> statement-breakpoint
CREATE INDEX `aliases_link` ON `aliases` (`link_id`);--> statement-breakpoint
CREATE INDEX `aliases_folded` ON `aliases` (`folded`) WHERE folded IS NOT NULL;--> statement-breakpoint
ALTER TABLE `accounts` ADD `domain_id` integer;--> statement-breakpoint
ALTER TABLE `links` ADD `domain_id` integer;--> statement-breakpoint
CREATE INDEX `links_domain` ON `links` (`domain_id`) WHERE domain_id IS NOT NULL;
