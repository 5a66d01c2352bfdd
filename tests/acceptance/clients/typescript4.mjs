// Runs in node with the published package `supermemory` 4.x and nothing of ours: one scenario a call.
// `node typescript4.mjs SCENARIO URL KEY TAG`, in the folder that holds node_modules.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";

const require = createRequire(join(process.cwd(), "package.json"));
const { default: Supermemory, toFile } = require("supermemory");
const [scenario, baseURL, apiKey, containerTag] = process.argv.slice(2);
const client = new Supermemory({ apiKey, baseURL });

async function done(name) {
  for (const end = Date.now() + 90_000; Date.now() < end; await pause(200)) {
    const document = await client.documents.get(name);
    assert.notEqual(document.status, "failed");
    if (document.status === "done" && document.dreamingStatus === "done") return document;
  }
  assert.fail(`never done: ${name}`);
}

const refused = (kind, status, call) =>
  assert.rejects(call, (error) => error instanceof kind && error.status === status && Boolean(error.error.error));

const scenarios = {
  async documents() {
    const customId = `${containerTag}-ropes`;
    const content = "# Ropes\n\nThe ropes were mended by Ida.";
    const metadata = { author: "ida", pages: 3, draft: true, topics: ["ship", "rope"] };
    const added = await client.add({ content, containerTag, customId, filepath: "/work/ropes.md", metadata });
    const found = await done(customId);
    assert.equal(found.id, added.id);
    assert.equal(found.content, content);
    assert.deepEqual(found.metadata, metadata);
    assert.deepEqual(found.containerTags, [containerTag]);
    assert.equal(found.taskType, "memory");
    await client.documents.update(customId, { content: "Cut by Eve.", metadata: { author: "eve" } });
    assert.equal((await done(added.id)).content, "Cut by Eve.");
    const file = await toFile(Buffer.from("It weighs 40 kg.\n"), "anchor.md");
    const sent = await client.documents.uploadFile({ file, containerTag, metadata: JSON.stringify({ n: 1 }) });
    assert.equal((await done(sent.id)).content, "It weighs 40 kg.\n");
    const batch = await client.documents.batchAdd({
      documents: [0, 1, 2].map((n) => ({ content: `text ${n}`, filepath: `/l/${n}.md`, metadata: { n } })),
      containerTag,
    });
    assert.deepEqual([batch.success, batch.failed], [3, 0]);
    const filters = { AND: [{ key: "n", value: "1", filterType: "numeric", numericOperator: ">=" }] };
    const listed = await client.documents.list({ containerTags: [containerTag], filepath: "/l/", filters, order: "asc" });
    assert.deepEqual(listed.memories.map((entry) => entry.filepath).sort(), ["/l/1.md", "/l/2.md"]);
    assert.equal(listed.pagination.totalItems, 2);
    assert.ok((await client.documents.listProcessing()).totalCount >= 0);
    const gone = await client.documents.deleteBulk({ ids: [sent.id] });
    assert.deepEqual([gone.success, gone.deletedCount], [true, 1]);
    await client.documents.delete(customId);
    await refused(Supermemory.NotFoundError, 404, () => client.documents.get(customId));
  },

  async recall() {
    const added = await client.add({ content: "user: I live in Bergen. I prefer tea over coffee.", containerTag });
    const document = await done(added.id);
    assert.deepEqual(document.memories.map((entry) => entry.memory).sort(), ["I live in Bergen.", "I prefer tea over coffee."]);
    const include = { documents: true, relatedMemories: true };
    const found = await client.search.memories({ q: "which drink", containerTag, threshold: 0.1, include });
    const tea = found.results.find((result) => result.memory === "I prefer tea over coffee.");
    assert.equal(tea.documents[0].id, added.id);
    assert.deepEqual(tea.context.parents, []);
    assert.ok(!("chunk" in tea));
    const both = await client.search.memories({ q: "tea", containerTag, searchMode: "hybrid" });
    const tea2 = both.results.find((result) => result.memory === "I prefer tea over coffee.");
    assert.ok(tea2.chunks.length > 0, "a memory takes the passage that says it along");
    const documents = await client.search.documents({ q: "tea", containerTags: [containerTag] });
    assert.equal(documents.results[0].documentId, added.id);
    const { profile } = await client.profile({ containerTag });
    assert.deepEqual(profile.static.sort(), ["I live in Bergen.", "I prefer tea over coffee."]);
    const body = { containerTag, id: tea.id, newContent: "I prefer water." };
    const changed = await client.memories.updateMemory(body);
    assert.deepEqual([changed.version, changed.parentMemoryId], [2, tea.id]);
    assert.deepEqual(await client.memories.forget({ containerTag, id: changed.id }), { id: changed.id, forgotten: true });
    assert.deepEqual((await client.profile({ containerTag })).profile.static, ["I live in Bergen."]);
  },

  async conversations() {
    const send = (messages) => client.post("/v4/conversations", { body: { conversationId: `c-${containerTag}`, messages, containerTags: [containerTag] } });
    const first = { role: "user", content: [{ type: "text", text: "My boat is called Gull." }] };
    const second = { role: "assistant", content: "A fine name.", tool_calls: [{ id: "1", function: { name: "look", arguments: "{}" } }] };
    const third = { role: "user", content: "I never sail on Sundays." };
    const one = await send([first]);
    assert.equal(one.conversationId, `c-${containerTag}`);
    await send([first, second]);
    const last = await send([third]);
    await send([third]);
    assert.equal(last.id, one.id);
    const document = await done(one.id);
    assert.equal(document.content, "user: My boat is called Gull.\n\nassistant: A fine name.\n[calls look({})]\n\nuser: I never sail on Sundays.");
    assert.deepEqual(document.memories.map((entry) => entry.memory).sort(), ["I never sail on Sundays.", "My boat is called Gull."]);
  },

  async errors() {
    const stranger = new Supermemory({ apiKey: "md_wrong", baseURL });
    await refused(Supermemory.AuthenticationError, 401, () => stranger.documents.list({}));
    await refused(Supermemory.BadRequestError, 400, () => client.add({ content: "x", containerTag: "no spaces allowed" }));
    await refused(Supermemory.BadRequestError, 400, () => client.documents.list({ limit: 0 }));
    await refused(Supermemory.NotFoundError, 404, () => client.memories.forget({ containerTag, id: "nothing" }));
    await client.add({ content: "x", containerTag, filepath: "/f/a" });
    await refused(Supermemory.ConflictError, 409, () => client.add({ content: "x", containerTag, filepath: "/f/a/b" }));
    await refused(Supermemory.InternalServerError, 501, () => client.settings.get());
    assert.deepEqual(await client.connections.list(), []);
  },

  async together() {
    const numbers = [...Array(32).keys()];
    const added = await Promise.all(numbers.map((n) => client.add({ content: `Line ${n}.`, containerTag, customId: `${containerTag}-${n}` })));
    assert.equal(new Set(added.map((item) => item.id)).size, 32);
    const got = await Promise.all(numbers.map((n) => client.documents.get(`${containerTag}-${n}`)));
    assert.deepEqual(got.map((document) => document.content), numbers.map((n) => `Line ${n}.`));
  },
};

await scenarios[scenario]();
