CREATE TABLE `link_checks` (
	`link_id` integer PRIMARY KEY NOT NULL,
	`account_id` integer NOT NULL,
	`checked_at` integer,
	`status` text,
	`failing_since` integer,
	`failures` integer DEFAULT 0 NOT NULL,
	`due_at` integer,
	`printed` integer DEFAULT 0 NOT NULL
);
--> statement-breakpoint
CREATE INDEX `link_checks_due` ON `link_checks` (`account_id`,`due_at`) WHERE due_at IS NOT NULL;--> statement-breakpoint
CREATE INDEX `link_checks_dead` ON `link_checks` (`account_id`) WHERE failures >= 3;
--> statement-breakpoint
CREATE TRIGGER link_checks_deleted AFTER DELETE ON links BEGIN
	DELETE FROM link_checks WHERE link_id = old.id;
END;
--> statement-breakpoint
CREATE TRIGGER link_checks_moved AFTER UPDATE OF account_id ON links BEGIN
	UPDATE link_checks SET account_id = new.account_id WHERE link_id = old.id;
END;
--> statement-breakpoint
CREATE TRIGGER link_checks_url AFTER UPDATE OF url ON links WHEN old.url IS NOT new.url BEGIN
	UPDATE link_checks SET checked_at = NULL, status = NULL, failing_since = NULL, failures = 0,
		due_at = NULL
	WHERE link_id = old.id;
END;
