-- The index says which links may match; their rows say which do. It needs no positions then
-- (detail='none'), which is a quarter of the bytes. It has the first 512 bytes of a text in small letters
-- (`indexText` in src/links/search.ts). Its rowid is `account_id << 32 | link id`.
DROP TABLE links_search;
--> statement-breakpoint
CREATE VIRTUAL TABLE links_search USING fts5(
	text, content='', contentless_delete=1, tokenize='trigram', detail='none'
);
--> statement-breakpoint
-- The service fills it in the background. Links after this id are compared row by row.
UPDATE search_progress SET indexed_to = 0;
