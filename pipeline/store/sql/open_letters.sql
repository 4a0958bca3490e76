SELECT count() AS letters
FROM
(
    SELECT digest, received_at
    FROM dead_letters FINAL
    WHERE tenant = {tenant:String}
) AS l
LEFT JOIN
(
    SELECT digest, max(marked_at) AS at
    FROM dead_letter_marks
    WHERE tenant = {tenant:String}
    GROUP BY digest
) AS m ON l.digest = m.digest
WHERE m.at < l.received_at
