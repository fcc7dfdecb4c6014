-- SPDX-License-Identifier: MIT
-- rows: 300 000 rows in memory, an index on them, and queries that sort and group.
PRAGMA temp_store = memory;
CREATE TABLE person (id INTEGER PRIMARY KEY, name TEXT, city TEXT, born INTEGER, note TEXT);
INSERT INTO person
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300000)
SELECT i,
       'name ' || (i * 7919 % 300007),
       'city ' || (i * 104729 % 997),
       1900 + i * 31 % 120,
       printf('%.*c', i % 40, 'x')
FROM n;
CREATE INDEX person_by_city ON person (city, born, name);
UPDATE person SET note = note || ' moved' WHERE id % 5 = 0;
SELECT count(*), sum(length(note)) FROM person;
SELECT city, count(*) AS people, min(name), group_concat(id % 10, '')
FROM person GROUP BY city ORDER BY people DESC, city LIMIT 3;
SELECT count(*) FROM (SELECT DISTINCT substr(name, 1, 9) FROM person ORDER BY 1 DESC);
DELETE FROM person WHERE born < 1930;
SELECT count(*) FROM person;
