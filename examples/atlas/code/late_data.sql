-- Sites that should have reported within the last two hours and did not; the alarm reads this every ten minutes.
SELECT s.site_id,
       s.river,
       max(r.measured_at)                       AS last_seen,
       now() - max(r.measured_at)               AS silence,
       count(*) FILTER (WHERE r.battery_v < 3.1) AS weak_battery
FROM   site s
LEFT   JOIN reading r USING (site_id)
WHERE  s.retired_on IS NULL
GROUP  BY s.site_id, s.river
HAVING max(r.measured_at) IS NULL
    OR max(r.measured_at) < now() - interval '2 hours'
ORDER  BY silence DESC NULLS FIRST;
