-- What happened to links that were there before: the last 4,096 changed URLs and deletions, one row
-- each, oldest first. A reader that counted matches learns here which of its counts no longer hold;
-- one that finds rows missing after the last it knows counts anew. New links are not in it: their
-- ids say that they are new.
CREATE TABLE link_changes (
	seq INTEGER PRIMARY KEY,
	account_id INTEGER NOT NULL,
	link_id INTEGER NOT NULL,
	is_deleted INTEGER NOT NULL
);
--> statement-breakpoint
CREATE TRIGGER link_changes_url AFTER UPDATE OF url ON links BEGIN
	INSERT INTO link_changes (account_id, link_id, is_deleted) VALUES (new.account_id, new.id, 0);
	DELETE FROM link_changes WHERE seq <= (SELECT max(seq) FROM link_changes) - 4096;
END;
--> statement-breakpoint
CREATE TRIGGER link_changes_deleted AFTER DELETE ON links BEGIN
	INSERT INTO link_changes (account_id, link_id, is_deleted) VALUES (old.account_id, old.id, 1);
	DELETE FROM link_changes WHERE seq <= (SELECT max(seq) FROM link_changes) - 4096;
END;
