-- A substring index over code and URL, three letters at a time, in any letter case. Its rowid is
-- `account_id << 32 | link id`: an account's links lie together, newest last, so that a search
-- reads and counts them without looking at any other table.
CREATE VIRTUAL TABLE links_search USING fts5(
	code, url, content='', contentless_delete=1, tokenize='trigram'
);
--> statement-breakpoint
INSERT INTO links_search (rowid, code, url) SELECT account_id << 32 | id, code, coalesce(url, '') FROM links ORDER BY account_id, id;
--> statement-breakpoint
-- One row: the links up to this id are in the index, the few after it are yet to come.
CREATE TABLE search_progress (indexed_to INTEGER NOT NULL);
--> statement-breakpoint
INSERT INTO search_progress (indexed_to) SELECT coalesce(max(id), 0) FROM links;
