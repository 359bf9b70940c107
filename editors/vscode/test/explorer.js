// The test explorer with a stand-in for the editor: finds the test sets of a file, runs it by `slope`, and says which
// failed and where. node test/explorer.js [SLOPE]
const assert = require("assert");
const fs = require("fs");
const os = require("os");
const path = require("path");
const { testSets, createExplorer } = require("../explorer.js");

const text = `using Test
@testset "good" begin
    @testset "quiet" begin
        @test 1 == 1
    end
end
@testset "all" begin
    @testset "inner" begin
        @test 1 == 1
        @test 2 == 3
    end
    @testset "other" begin
        @test 3 == 3
    end
end
@testset "after" begin
    @test true
end
`;

class Items extends Map {
  constructor(parent) {
    super();
    this.parent = parent;
  }
  add(item) {
    item.parent = this.parent;
    this.set(item.id, item);
  }
}
function item(id, label, uri) {
  const made = { id, label, uri };
  made.children = new Items(made);
  return made;
}

async function main() {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "slope-explorer-"));
  const file = path.join(folder, "test_all.slope");
  fs.writeFileSync(file, text);
  const uri = { fsPath: file, toString: () => `file://${file}` };
  const document = { languageId: "slope", uri, getText: () => text };
  const items = new Items(undefined);
  const seen = {};
  const failures = [];
  let handler;
  const note = (state) => (each) => (seen[each.label] = state);
  const vscode = {
    Range: class {},
    Position: class {
      constructor(line) {
        this.line = line;
      }
    },
    Location: class {
      constructor(uri, position) {
        Object.assign(this, { uri, position });
      }
    },
    TestMessage: class {
      constructor(message) {
        this.message = message;
      }
    },
    Uri: { file: (fsPath) => ({ fsPath }) },
    TestRunProfileKind: { Run: 1 },
    tests: {
      createTestController: () => ({
        items,
        createTestItem: item,
        createRunProfile: (_name, _kind, run) => (handler = run),
        createTestRun: () => ({
          started: note("started"),
          passed: note("passed"),
          skipped: note("skipped"),
          errored: note("errored"),
          failed: (each, messages) => {
            seen[each.label] = "failed";
            failures.push(...messages);
          },
          appendOutput: () => undefined,
          end: () => (seen.end = true),
        }),
        dispose: () => undefined,
      }),
    },
    workspace: {
      textDocuments: [document],
      onDidOpenTextDocument: () => ({ dispose: () => undefined }),
      onDidSaveTextDocument: () => ({ dispose: () => undefined }),
      openTextDocument: async () => document,
      findFiles: async () => [],
    },
  };
  assert.deepStrictEqual(
    testSets(text).map((set) => [set.name, set.line, set.depth]),
    [["good", 1, 0], ["quiet", 2, 1], ["all", 6, 0], ["inner", 7, 1], ["other", 11, 1], ["after", 15, 0]]
  );
  createExplorer(vscode, () => (process.argv[2] ? path.resolve(process.argv[2]) : "slope"));
  assert.strictEqual(items.size, 1);
  await handler({}, undefined);
  fs.rmSync(folder, { recursive: true });
  assert.deepStrictEqual(seen, {
    good: "passed", quiet: "passed", all: "failed", inner: "failed", other: "passed", after: "skipped", end: true,
  });
  const place = failures.find((each) => each.location);
  assert.strictEqual(place.location.position.line, 9);
  assert.match(place.message, /2 == 3/);
  console.log("explorer: ok");
}

main().catch((problem) => {
  console.error(problem);
  process.exit(1);
});
