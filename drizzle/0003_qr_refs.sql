CREATE TABLE `qr_refs` (
	`account_id` integer NOT NULL,
	`ref` text NOT NULL,
	`created_at` integer NOT NULL,
	PRIMARY KEY(`account_id`, `ref`)
);
