// Starts `slope lsp` and lets the editor talk to it.
const { workspace } = require("vscode");
const { LanguageClient, TransportKind } = require("vscode-languageclient/node");

let client;

exports.activate = function () {
  const command = workspace.getConfiguration("slope").get("command");
  client = new LanguageClient(
    "slope",
    "Slope",
    { command, args: ["lsp"], transport: TransportKind.stdio },
    { documentSelector: [{ language: "slope" }] }
  );
  return client.start();
};

exports.deactivate = function () {
  return client ? client.stop() : undefined;
};
