ALTER TABLE `links` ADD `destinations` text;
