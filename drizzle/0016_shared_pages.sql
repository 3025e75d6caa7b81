CREATE TABLE `shared_pages` (
	`link_id` integer PRIMARY KEY NOT NULL,
	`hash` blob NOT NULL,
	`shows_url` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `shared_pages_hash` ON `shared_pages` (`hash`);
