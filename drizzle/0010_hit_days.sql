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
ALTER TABLE `account_hits` ADD `hours` blob;--> statement-breakpoint
ALTER TABLE `hits` ADD `hours` blob;--> statement-breakpoint
-- Days of links that were deleted are not read any more, and deleted with the link since.
DELETE FROM `hits_by_day` WHERE `scope` = 0 AND `id` NOT IN (SELECT `id` FROM `links`);--> statement-breakpoint
-- The newest four days of each link and account, whose hours are in `hits` and `account_hits`, if
-- all of their hits have hours.
CREATE TABLE `newest_days` (
	`scope` integer NOT NULL,
	`id` integer NOT NULL,
	`block` integer NOT NULL,
	PRIMARY KEY(`scope`, `id`)
) WITHOUT ROWID;
--> statement-breakpoint
INSERT INTO `newest_days`
SELECT `scope`, `id`, max(`day`) / 4 FROM `hits_by_day`
WHERE CASE `scope` WHEN 0 THEN `id` IN (SELECT `link_id` FROM `hits`)
	ELSE `id` IN (SELECT `account_id` FROM `account_hits`) END
GROUP BY `scope`, `id`;--> statement-breakpoint
DELETE FROM `newest_days` WHERE (`scope`, `id`) IN (
	SELECT `scope`, `id` FROM (
		SELECT `scope`, `id`, `count` FROM `hits_by_day` JOIN `newest_days` USING (`scope`, `id`)
		WHERE `day` / 4 = `block`
		UNION ALL
		SELECT `scope`, `id`, -`count` FROM `hits_by_hour` JOIN `newest_days` USING (`scope`, `id`)
		WHERE `hour` / 96 = `block`)
	GROUP BY `scope`, `id` HAVING sum(`count`) <> 0);--> statement-breakpoint
-- The hours of each row as varints, in hexadecimal: see src/hits/hours.ts. `base`: where the first
-- hour counts from.
CREATE TABLE `packed_hours` (
	`scope` integer NOT NULL,
	`id` integer NOT NULL,
	`base` integer NOT NULL,
	`hours` blob NOT NULL,
	PRIMARY KEY(`scope`, `id`, `base`)
) WITHOUT ROWID;
--> statement-breakpoint
INSERT INTO `packed_hours`
WITH `based` AS (
	SELECT `hour`, `scope`, `id`, `count`, iif(`hour` / 96 = `block`, 0, `hour` / 24 * 24) AS `base`
	FROM `hits_by_hour` LEFT JOIN `newest_days` USING (`scope`, `id`)),
`spaced` AS (
	SELECT *, coalesce(lag(`hour`) OVER (PARTITION BY `scope`, `id`, `base` ORDER BY `hour` DESC) - `hour`,
		`hour` - `base`) AS `gap`
	FROM `based`),
`numbers` AS (
	SELECT `scope`, `id`, `base`, `hour`, 0 AS `part`, `gap` AS `n` FROM `spaced`
	UNION ALL
	SELECT `scope`, `id`, `base`, `hour`, 1, `count` FROM `spaced`)
SELECT `scope`, `id`, `base`, unhex(group_concat(CASE
	WHEN `n` < 1 << 7 THEN printf('%02X', `n`)
	WHEN `n` < 1 << 14 THEN printf('%02X%02X', `n` & 127 | 128, `n` >> 7)
	WHEN `n` < 1 << 21 THEN printf('%02X%02X%02X', `n` & 127 | 128, `n` >> 7 & 127 | 128, `n` >> 14)
	WHEN `n` < 1 << 28 THEN printf('%02X%02X%02X%02X', `n` & 127 | 128, `n` >> 7 & 127 | 128,
		`n` >> 14 & 127 | 128, `n` >> 21)
	ELSE printf('%02X%02X%02X%02X%02X', `n` & 127 | 128, `n` >> 7 & 127 | 128, `n` >> 14 & 127 | 128,
		`n` >> 21 & 127 | 128, `n` >> 28) END, '' ORDER BY `hour` DESC, `part`))
FROM `numbers` GROUP BY `scope`, `id`, `base`;--> statement-breakpoint
INSERT INTO `hit_days`
SELECT `scope`, `id`, `day`, `count`,
	(SELECT `hours` FROM `packed_hours` AS `packed` WHERE `packed`.`scope` = `days`.`scope`
		AND `packed`.`id` = `days`.`id` AND `base` = `day` * 24), NULL
FROM `hits_by_day` AS `days` LEFT JOIN `newest_days` USING (`scope`, `id`)
WHERE `day` / 4 IS NOT `block`;--> statement-breakpoint
UPDATE `hits` SET `hours` = (
	SELECT `hours` FROM `packed_hours` WHERE `scope` = 0 AND `id` = `link_id` AND `base` = 0);--> statement-breakpoint
UPDATE `account_hits` SET `hours` = (
	SELECT `hours` FROM `packed_hours` WHERE `scope` = 1 AND `id` = `account_id` AND `base` = 0);--> statement-breakpoint
INSERT INTO `hit_days`
SELECT `scope`, `id`, `day`, 0, NULL, `parts` FROM `visits_by_day` WHERE true
ON CONFLICT DO UPDATE SET `parts` = excluded.`parts`;--> statement-breakpoint
DROP TABLE `packed_hours`;--> statement-breakpoint
DROP TABLE `newest_days`;--> statement-breakpoint
DROP TABLE `hits_by_day`;--> statement-breakpoint
DROP TABLE `hits_by_hour`;--> statement-breakpoint
DROP TABLE `visits_by_day`;
