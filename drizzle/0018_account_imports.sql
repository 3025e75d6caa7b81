ALTER TABLE `account_hits` ADD `imported` integer DEFAULT 0 NOT NULL;
