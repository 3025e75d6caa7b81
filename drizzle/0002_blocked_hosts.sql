CREATE TABLE `blocked_hosts` (
	`host` text PRIMARY KEY NOT NULL,
	`reason` text NOT NULL,
	`blocked_at` integer NOT NULL
);
