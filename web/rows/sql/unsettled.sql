SELECT
    (
        SELECT count()
        FROM sessions FINAL
        WHERE tenant = {tenant:String} AND status = 'held'
          AND $agents
    ) AS held,
    (
        SELECT count()
        FROM
        (
            SELECT digest, received_at
            FROM dead_letters FINAL
            PREWHERE received_at >= toDateTime64({since:Int64}, 9, 'UTC')
            WHERE tenant = {tenant:String}
              AND $agents
        ) AS l
        LEFT JOIN
        (
            SELECT digest, max(marked_at) AS at
            FROM dead_letter_marks
            WHERE tenant = {tenant:String}
            GROUP BY digest
        ) AS m ON l.digest = m.digest
        WHERE m.at < l.received_at
    ) AS dead_letters
SETTINGS join_use_nulls = 0
