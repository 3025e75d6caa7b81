ALTER TABLE `api_keys` ADD `per_minute` integer;--> statement-breakpoint
ALTER TABLE `api_keys` ADD `origins` text;--> statement-breakpoint
CREATE INDEX `api_keys_origins` ON `api_keys` (`id`) WHERE origins IS NOT NULL;