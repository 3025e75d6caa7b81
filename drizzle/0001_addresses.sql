ALTER TABLE `aliases` ADD `position` integer DEFAULT 0 NOT NULL;
--> statement-breakpoint
ALTER TABLE `aliases` ADD `displayed` integer DEFAULT 0 NOT NULL;
--> statement-breakpoint
-- The index has another form of each text (`indexText` in src/links/search.ts). The service fills it
-- again in the background; links after `indexed_to` are compared row by row.
DROP TABLE links_search;
--> statement-breakpoint
CREATE VIRTUAL TABLE links_search USING fts5(
	text, content='', contentless_delete=1, tokenize='trigram', detail='none'
);
--> statement-breakpoint
UPDATE search_progress SET indexed_to = 0;
