-- One row per hour (or day) and link or account with hits in it, in the order of time.
CREATE TABLE `hits_by_day` (
	`day` integer NOT NULL,
	`scope` integer NOT NULL,
	`id` integer NOT NULL,
	`dimension` text NOT NULL,
	`count` integer NOT NULL,
	PRIMARY KEY(`day`, `scope`, `id`, `dimension`)
) WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `hits_by_hour` (
	`hour` integer NOT NULL,
	`scope` integer NOT NULL,
	`id` integer NOT NULL,
	`dimension` text NOT NULL,
	`count` integer NOT NULL,
	PRIMARY KEY(`hour`, `scope`, `id`, `dimension`)
) WITHOUT ROWID;
--> statement-breakpoint
-- The old tables keep what a count was before the first hit of an hour or day: the hits of a bucket
-- are the difference to the next such row, or to the count itself.
INSERT INTO `hits_by_day`
	SELECT day, 0, id, '', hits FROM (
		SELECT day, link_id AS id, coalesce(
			lead(count) OVER (PARTITION BY link_id ORDER BY day),
			(SELECT count FROM `hits` AS whole WHERE whole.link_id = `hit_days`.link_id)
		) - count AS hits FROM `hit_days`
	) WHERE hits > 0;
--> statement-breakpoint
INSERT INTO `hits_by_hour`
	SELECT hour, 0, id, '', hits FROM (
		SELECT hour, id, coalesce(
			lead(count) OVER (PARTITION BY id ORDER BY hour),
			(SELECT count FROM `hits` AS whole WHERE whole.link_id = id)
		) - count AS hits FROM (
			SELECT id, hour, min(count) AS count FROM (
				SELECT link_id AS id, day * 24 + first_hour AS hour, count FROM `hit_days`
				UNION ALL SELECT link_id, hour, count FROM `hit_hours`
			) GROUP BY id, hour
		)
	) WHERE hits > 0 AND hour >= (SELECT hour FROM `hit_totals`) - 72;
--> statement-breakpoint
INSERT INTO `hits_by_day`
	SELECT day, 1, id, '', hits FROM (
		SELECT day, account_id AS id, coalesce(
			lead(count) OVER (PARTITION BY account_id ORDER BY day),
			(SELECT count FROM `account_hits` AS whole WHERE whole.account_id = `account_hit_days`.account_id)
		) - count AS hits FROM `account_hit_days`
	) WHERE hits > 0;
--> statement-breakpoint
INSERT INTO `hits_by_hour`
	SELECT hour, 1, id, '', hits FROM (
		SELECT hour, id, coalesce(
			lead(count) OVER (PARTITION BY id ORDER BY hour),
			(SELECT count FROM `account_hits` AS whole WHERE whole.account_id = id)
		) - count AS hits FROM (
			SELECT id, hour, min(count) AS count FROM (
				SELECT account_id AS id, day * 24 + first_hour AS hour, count FROM `account_hit_days`
				UNION ALL SELECT account_id, hour, count FROM `account_hit_hours`
			) GROUP BY id, hour
		)
	) WHERE hits > 0 AND hour >= (SELECT hour FROM `hit_totals`) - 72;
--> statement-breakpoint
DROP TABLE `account_hit_days`;
--> statement-breakpoint
DROP TABLE `account_hit_hours`;
--> statement-breakpoint
DROP TABLE `hit_days`;
--> statement-breakpoint
DROP TABLE `hit_hours`;
--> statement-breakpoint
ALTER TABLE `hit_totals` DROP COLUMN `hour`;
