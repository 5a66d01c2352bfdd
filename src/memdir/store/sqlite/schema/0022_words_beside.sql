-- Words are searched in an index beside the database (retrieval/lexical), which takes them apart itself.
drop trigger chunk_words_insert;
drop trigger chunk_words_delete;
drop table chunk_words;
alter table chunk drop column grams;
