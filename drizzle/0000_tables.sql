CREATE TABLE `account_hits` (
	`account_id` integer PRIMARY KEY NOT NULL,
	`count` integer NOT NULL,
	`imported` integer DEFAULT 0 NOT NULL,
	`hours` blob);
--> statement-breakpoint
CREATE TABLE `accounts` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	"name" text NOT NULL,
	`plan` text NOT NULL,
	`link_count` integer DEFAULT 0 NOT NULL,
	`created_at` integer NOT NULL,
	`disabled_at` integer,
	`deleted_at` integer,
	`url_bytes` integer DEFAULT 0 NOT NULL,
	`links_disabled_at` integer,
	`time_zone` text,
	`domain_id` integer, `is_owner` integer DEFAULT 0 NOT NULL);
--> statement-breakpoint
CREATE TABLE `aliases` (
	`domain_id` integer DEFAULT 0 NOT NULL,
	`path` text NOT NULL,
	`link_id` integer NOT NULL,
	`folded` text,
	`any_case` integer DEFAULT 0 NOT NULL,
	`position` integer DEFAULT 0 NOT NULL,
	`displayed` integer DEFAULT 0 NOT NULL, `small_path` text DEFAULT '' NOT NULL,
	PRIMARY KEY(`domain_id`, `path`)
) WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `api_keys` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`account_id` integer NOT NULL,
	`hash` blob NOT NULL,
	`last_four` text NOT NULL,
	`created_at` integer NOT NULL,
	`ends_at` integer,
	`prefix` text,
	`last_used_at` integer,
	`name` text,
	`scope` text DEFAULT 'write' NOT NULL,
	`created_by` text);
--> statement-breakpoint
CREATE TABLE `blocked_hosts` (
	`host` text PRIMARY KEY NOT NULL,
	`reason` text NOT NULL,
	`blocked_at` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `campaign_templates` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`account_id` integer NOT NULL,
	`name` text NOT NULL,
	`query` text NOT NULL,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `disabled_codes` (
	`code` text PRIMARY KEY NOT NULL,
	`reason` text NOT NULL,
	`disabled_at` integer NOT NULL
);
--> statement-breakpoint
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
CREATE TABLE `hit_days` (
	`scope` integer NOT NULL,
	`id` integer NOT NULL,
	`day` integer NOT NULL,
	`count` integer NOT NULL,
	`hours` blob,
	`parts` blob,
	PRIMARY KEY(`scope`, `id`, `day`)
) WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `hit_positions` (
	`host` text NOT NULL,
	`journal_id` text NOT NULL,
	`position` integer NOT NULL,
	PRIMARY KEY(`host`, `journal_id`)
);
--> statement-breakpoint
CREATE TABLE `hit_totals` (
	`id` integer PRIMARY KEY NOT NULL,
	`journal_id` text NOT NULL,
	`position` integer NOT NULL,
	`redirects` integer NOT NULL,
	`imported` integer DEFAULT 0 NOT NULL
);
--> statement-breakpoint
CREATE TABLE `hits` (
	`link_id` integer PRIMARY KEY NOT NULL,
	`account_id` integer NOT NULL,
	`count` integer NOT NULL,
	`imported` integer DEFAULT 0 NOT NULL,
	`hours` blob);
--> statement-breakpoint
CREATE TABLE `host_settings` (
	`name` text PRIMARY KEY NOT NULL,
	`value` text NOT NULL
);
--> statement-breakpoint
CREATE TABLE `identities` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`issuer` text NOT NULL,
	`subject` text NOT NULL,
	`person_id` integer NOT NULL,
	`email` text,
	`created_at` integer NOT NULL,
	`last_used_at` integer
);
--> statement-breakpoint
CREATE TABLE `label_formats` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`account_id` integer NOT NULL,
	`name` text NOT NULL,
	`grid` text NOT NULL,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE link_changes (
	seq INTEGER PRIMARY KEY,
	account_id INTEGER NOT NULL,
	link_id INTEGER NOT NULL,
	is_deleted INTEGER NOT NULL
);
--> statement-breakpoint
CREATE TABLE `link_tags` (
	`account_id` integer NOT NULL,
	`tag` text NOT NULL,
	`link_id` integer NOT NULL,
	PRIMARY KEY(`account_id`, `tag`, `link_id`)
) WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `links` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`code` text NOT NULL,
	`account_id` integer NOT NULL,
	`url` text,
	`url_key` blob,
	`passcode_hash` blob NOT NULL,
	`created_at` integer NOT NULL,
	`title` text,
	`tags` text,
	`note` text,
	`paused` integer DEFAULT 0 NOT NULL,
	`starts_at` integer,
	`expires_at` integer,
	`max_hits` integer,
	`expired_url` text,
	`forward_query` integer DEFAULT 0 NOT NULL,
	`delete_at` integer,
	`no_index` integer DEFAULT 0 NOT NULL,
	`destinations` text, `password` text, `domain_id` integer, `typed_code` text, `forward_path` text);
--> statement-breakpoint
CREATE VIRTUAL TABLE links_search USING fts5(
	text, content='', contentless_delete=1, tokenize='trigram', detail='none'
);
--> statement-breakpoint
CREATE TABLE `log_position` (
	`id` integer PRIMARY KEY NOT NULL,
	`cluster` text NOT NULL,
	`seq` integer NOT NULL,
	`chain` blob NOT NULL
);
--> statement-breakpoint
CREATE TABLE `memberships` (
	`account_id` integer NOT NULL,
	`person_id` integer NOT NULL,
	`role` text NOT NULL,
	`created_at` integer NOT NULL,
	PRIMARY KEY(`account_id`, `person_id`)
);
--> statement-breakpoint
CREATE TABLE `one_time_links` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`hash` blob NOT NULL,
	`purpose` text NOT NULL,
	"person_id" integer,
	`email` text,
	`plan` text,
	`created_at` integer NOT NULL,
	`ends_at` integer NOT NULL,
	`used_at` integer,
	`account_id` integer, `role` text);
--> statement-breakpoint
CREATE TABLE `people` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`email` text NOT NULL,
	`created_at` integer NOT NULL,
	`account_id` integer NOT NULL,
	`password_hash` text,
	`password_changed_at` integer,
	`is_owner` integer DEFAULT 0 NOT NULL,
	`totp_secret` blob,
	`totp_enabled_at` integer,
	`totp_last_step` integer
);
--> statement-breakpoint
CREATE TABLE `qr_logos` (
	`account_id` integer PRIMARY KEY NOT NULL,
	`type` text NOT NULL,
	`content` blob NOT NULL,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `qr_presets` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`account_id` integer NOT NULL,
	`name` text NOT NULL,
	`options` text NOT NULL,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `qr_refs` (
	`account_id` integer NOT NULL,
	`ref` text NOT NULL,
	`created_at` integer NOT NULL,
	PRIMARY KEY(`account_id`, `ref`)
);
--> statement-breakpoint
CREATE TABLE `recovery_codes` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	"person_id" integer NOT NULL,
	`hash` blob NOT NULL,
	`used_at` integer
);
--> statement-breakpoint
CREATE TABLE search_progress (indexed_to INTEGER NOT NULL);
--> statement-breakpoint
CREATE TABLE `sessions` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`hash` blob NOT NULL,
	`account_id` integer NOT NULL,
	`created_at` integer NOT NULL,
	`seen_at` integer NOT NULL,
	`address` text NOT NULL,
	`agent` text NOT NULL,
	`proved_at` integer DEFAULT 0 NOT NULL,
	`is_long` integer DEFAULT 0 NOT NULL,
	`person_id` integer DEFAULT 0 NOT NULL, `identity_id` integer);
--> statement-breakpoint
CREATE TABLE `settings` (
	`name` text PRIMARY KEY NOT NULL,
	`value` text NOT NULL
);
--> statement-breakpoint
CREATE TABLE `shared_pages` (
	`link_id` integer PRIMARY KEY NOT NULL,
	`hash` blob NOT NULL,
	`shows_url` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `visit_batches` (
	`host` text PRIMARY KEY NOT NULL,
	`batch` text NOT NULL
);
--> statement-breakpoint
CREATE INDEX `aliases_folded` ON `aliases` (`folded`) WHERE folded IS NOT NULL;
--> statement-breakpoint
CREATE INDEX `aliases_link` ON `aliases` (`link_id`);
--> statement-breakpoint
CREATE INDEX `aliases_small` ON `aliases` (`domain_id`,`small_path`);
--> statement-breakpoint
CREATE INDEX `api_keys_account` ON `api_keys` (`account_id`);
--> statement-breakpoint
CREATE UNIQUE INDEX `api_keys_hash` ON `api_keys` (`hash`);
--> statement-breakpoint
CREATE UNIQUE INDEX `campaign_templates_name` ON `campaign_templates` (`account_id`,`name`);
--> statement-breakpoint
CREATE UNIQUE INDEX `domains_host` ON `domains` (`host`);
--> statement-breakpoint
CREATE INDEX `hits_account` ON `hits` (`account_id`);
--> statement-breakpoint
CREATE INDEX `identities_person` ON `identities` (`person_id`);
--> statement-breakpoint
CREATE UNIQUE INDEX `identities_subject` ON `identities` (`issuer`,`subject`);
--> statement-breakpoint
CREATE UNIQUE INDEX `label_formats_name` ON `label_formats` (`account_id`,`name`);
--> statement-breakpoint
CREATE INDEX `link_tags_link` ON `link_tags` (`link_id`);
--> statement-breakpoint
CREATE INDEX `links_account` ON `links` (`account_id`,`id`);
--> statement-breakpoint
CREATE UNIQUE INDEX `links_code` ON `links` (`code`);
--> statement-breakpoint
CREATE INDEX `links_delete` ON `links` (`delete_at`) WHERE delete_at IS NOT NULL;
--> statement-breakpoint
CREATE INDEX `links_domain` ON `links` (`domain_id`) WHERE domain_id IS NOT NULL;
--> statement-breakpoint
CREATE INDEX `links_url` ON `links` (`account_id`,`url_key`) WHERE url_key IS NOT NULL;
--> statement-breakpoint
CREATE INDEX `memberships_person` ON `memberships` (`person_id`);
--> statement-breakpoint
CREATE UNIQUE INDEX `one_time_links_hash` ON `one_time_links` (`hash`);
--> statement-breakpoint
CREATE UNIQUE INDEX `people_email` ON `people` (lower("email"));
--> statement-breakpoint
CREATE UNIQUE INDEX `qr_presets_name` ON `qr_presets` (`account_id`,`name`);
--> statement-breakpoint
CREATE INDEX `recovery_codes_person` ON `recovery_codes` (`person_id`);
--> statement-breakpoint
CREATE INDEX `sessions_account` ON `sessions` (`account_id`);
--> statement-breakpoint
CREATE INDEX `sessions_created` ON `sessions` (`created_at`);
--> statement-breakpoint
CREATE UNIQUE INDEX `sessions_hash` ON `sessions` (`hash`);
--> statement-breakpoint
CREATE INDEX `sessions_person` ON `sessions` (`person_id`);
--> statement-breakpoint
CREATE UNIQUE INDEX `shared_pages_hash` ON `shared_pages` (`hash`);
--> statement-breakpoint
INSERT INTO search_progress (indexed_to) VALUES (0);
--> statement-breakpoint
CREATE TRIGGER link_changes_deleted AFTER DELETE ON links BEGIN
	INSERT INTO link_changes (account_id, link_id, is_deleted) VALUES (old.account_id, old.id, 1);
	DELETE FROM link_changes WHERE seq <= (SELECT max(seq) FROM link_changes) - 4096;
END;
--> statement-breakpoint
CREATE TRIGGER link_changes_texts AFTER UPDATE OF url, title, tags, note ON links
WHEN old.url IS NOT new.url OR old.title IS NOT new.title OR old.tags IS NOT new.tags
	OR old.note IS NOT new.note
BEGIN
	INSERT INTO link_changes (account_id, link_id, is_deleted) VALUES (new.account_id, new.id, 0);
	DELETE FROM link_changes WHERE seq <= (SELECT max(seq) FROM link_changes) - 4096;
END;
--> statement-breakpoint
CREATE TRIGGER link_tags_changed AFTER UPDATE OF tags ON links WHEN old.tags IS NOT new.tags
BEGIN
	DELETE FROM link_tags WHERE link_id = old.id;
	INSERT INTO link_tags (account_id, tag, link_id)
		SELECT new.account_id, value, new.id FROM json_each(new.tags);
END;
--> statement-breakpoint
CREATE TRIGGER link_tags_deleted AFTER DELETE ON links WHEN old.tags IS NOT NULL
BEGIN
	DELETE FROM link_tags WHERE link_id = old.id;
END;
