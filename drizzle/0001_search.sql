-- A substring index over code and URL. Three letters at a time, any letter case.
CREATE VIRTUAL TABLE links_search USING fts5(
	code, url, content='', contentless_delete=1, tokenize='trigram'
);
--> statement-breakpoint
INSERT INTO links_search (rowid, code, url) SELECT id, code, coalesce(url, '') FROM links;
