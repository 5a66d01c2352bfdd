-- Files that are found by words only, and behind everything else (store/ignored.py).

alter table document add column searched_last text; -- null; 'generated': a tool wrote it; 'ignored': an ignore file names it
