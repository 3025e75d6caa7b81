CREATE TABLE `app_files` (
	`domain_id` integer NOT NULL,
	`kind` text NOT NULL,
	`content` text NOT NULL,
	PRIMARY KEY(`domain_id`, `kind`)
);
--> statement-breakpoint
CREATE TABLE `unknown_paths` (
	`domain_id` integer NOT NULL,
	`day` integer NOT NULL,
	`path` text NOT NULL,
	`count` integer NOT NULL,
	PRIMARY KEY(`day`, `domain_id`, `path`)
);
