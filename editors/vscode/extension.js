// Starts `slope lsp` and lets the editor talk to it; runs and profiles files in a terminal.
const { commands, window, workspace } = require("vscode");
const { LanguageClient, TransportKind } = require("vscode-languageclient/node");

let client;

function slopeCommand() {
  return workspace.getConfiguration("slope").get("command");
}

function start() {
  const command = slopeCommand();
  client = new LanguageClient(
    "slope",
    "Slope",
    { command, args: ["lsp"], transport: TransportKind.stdio },
    { documentSelector: [{ language: "slope" }] }
  );
  return client.start().catch(() => {
    window.showErrorMessage(
      `\`${command} lsp\` cannot be started: put slope on the path, or set slope.command to where it is.`
    );
  });
}

// One terminal for all runs: the shell keeps its folder and what was printed before.
function inTerminal(words) {
  const terminal = window.terminals.find((each) => each.name === "Slope") || window.createTerminal("Slope");
  terminal.show(true);
  terminal.sendText(words.map((word) => (/^[\w./-]+$/.test(word) ? word : `'${word.replace(/'/g, "'\\''")}'`)).join(" "));
}

function onFile(words) {
  return async (uri) => {
    const document = window.activeTextEditor && window.activeTextEditor.document;
    const path = uri && uri.fsPath ? uri.fsPath : document && document.uri.fsPath;
    if (!path) return;
    if (document && document.isDirty && document.uri.fsPath === path) await document.save();
    inTerminal([slopeCommand(), ...words, path]);
  };
}

exports.activate = function (context) {
  context.subscriptions.push(
    commands.registerCommand("slope.run", onFile([])),
    commands.registerCommand("slope.profile", onFile(["profile"])),
    commands.registerCommand("slope.restart", async () => {
      if (client) await client.stop().catch(() => undefined);
      return start();
    })
  );
  return start();
};

exports.deactivate = function () {
  return client ? client.stop() : undefined;
};
