create function term_key(container bigint, term text) returns bigint language sql immutable strict parallel safe
    as $$ select hashtextextended(term, 0) # hashint8extended(container, 0) $$;
comment on function term_key(bigint, text) is
    'A term of store/analysis.py in a container: who asks for terms of one container cannot meet those of another';
comment on column chunk_words.words is 'term_key() of each different term';
comment on column chunk_words.counts is 'How often each is there';
comment on column chunk_words.length is 'How many terms it has, repeated ones counted';

-- Words were stemmed as English ones. All passages are taken apart again in the background.
delete from chunk_words;
insert into job (document_id, kind, container_id, priority, not_before_ms, created_at_ms, turn)
select id, 'index', container_id, 1, 0, cast(extract(epoch from now()) * 1000 as bigint), 0 from document where kind = 'file'
on conflict (document_id, kind) do nothing;
