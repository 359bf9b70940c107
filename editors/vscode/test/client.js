// Talks to `slope lsp` through the library that the extension uses, and checks what comes back. node test/client.js [SLOPE]
const { spawn } = require("child_process");
const assert = require("assert");
const lsp = require("vscode-languageserver-protocol/node");

const text = `struct Point
    x::Float64
    y::Float64
end
area(p::Point) = p.x * p.z
function total(values)
    s = 0.0
    for v in values
        s += v
    end
    s
end
println(total([1.0, 2.0]))
`;
const uri = "file:///model.slope";
const at = (line, character) => ({ textDocument: { uri }, position: { line, character } });

async function main() {
  // As the client library starts a server with the transport stdio: it appends the option itself.
  const server = spawn(process.argv[2] || "slope", ["lsp", "--stdio"]);
  const connection = lsp.createProtocolConnection(
    new lsp.StreamMessageReader(server.stdout),
    new lsp.StreamMessageWriter(server.stdin)
  );
  const problems = new Promise((resolve) =>
    connection.onNotification(lsp.PublishDiagnosticsNotification.type, (each) => resolve(each.diagnostics))
  );
  connection.listen();
  const started = await connection.sendRequest(lsp.InitializeRequest.type, {
    processId: process.pid,
    rootUri: null,
    capabilities: {},
  });
  assert.ok(started.capabilities.hoverProvider);
  await connection.sendNotification(lsp.InitializedNotification.type, {});
  await connection.sendNotification(lsp.DidOpenTextDocumentNotification.type, {
    textDocument: { uri, languageId: "slope", version: 1, text },
  });
  assert.match((await problems)[0].message, /no field `z`/);

  const hover = await connection.sendRequest(lsp.HoverRequest.type, at(4, 17));
  assert.match(JSON.stringify(hover.contents), /Float64|Point/);
  const found = await connection.sendRequest(lsp.ReferencesRequest.type, {
    ...at(5, 10),
    context: { includeDeclaration: true },
  });
  assert.strictEqual(found.length, 2);
  const edit = await connection.sendRequest(lsp.RenameRequest.type, { ...at(6, 4), newName: "sum_so_far" });
  assert.strictEqual(edit.changes[uri].length, 3);
  const symbols = await connection.sendRequest(lsp.DocumentSymbolRequest.type, { textDocument: { uri } });
  assert.deepStrictEqual(symbols.map((each) => each.name), ["Point", "area", "total"]);
  const folds = await connection.sendRequest(lsp.FoldingRangeRequest.type, { textDocument: { uri } });
  assert.ok(folds.length >= 2);
  const tokens = await connection.sendRequest(lsp.SemanticTokensRequest.type, { textDocument: { uri } });
  assert.ok(tokens.data.length > 0 && tokens.data.length % 5 === 0);
  const signature = await connection.sendRequest(lsp.SignatureHelpRequest.type, at(12, 14));
  assert.match(signature.signatures[0].label, /total/);
  const completion = await connection.sendRequest(lsp.CompletionRequest.type, at(4, 25));
  const items = Array.isArray(completion) ? completion : completion.items;
  assert.ok(items.some((each) => each.label === "y"));

  await connection.sendRequest(lsp.ShutdownRequest.type);
  await connection.sendNotification(lsp.ExitNotification.type);
  const status = await new Promise((resolve) => server.on("exit", resolve));
  assert.strictEqual(status, 0);
  console.log("the language server answered the client library");
}

main().then(() => process.exit(0), (problem) => {
  console.error(problem);
  process.exit(1);
});
