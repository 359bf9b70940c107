// Starts `slope lsp` and lets the editor talk to it; runs files in a terminal, shows profiles and tests.
const { execFile } = require("child_process");
const fs = require("fs");
const os = require("os");
const path = require("path");
const vscode = require("vscode");
const { LanguageClient, TransportKind } = require("vscode-languageclient/node");
const { createExplorer } = require("./explorer.js");

const { commands, window, workspace } = vscode;

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

function onFile(action) {
  return async (uri) => {
    const document = window.activeTextEditor && window.activeTextEditor.document;
    const file = uri && uri.fsPath ? uri.fsPath : document && document.uri.fsPath;
    if (!file) return;
    if (document && document.isDirty && document.uri.fsPath === file) await document.save();
    return action(file);
  };
}

// Profiles a file and shows the page with the flame graph beside it.
function showProfile(file) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "slope-profile-"));
  const page = path.join(folder, "profile.html");
  const words = ["profile", "--format", "html", "-o", page, file];
  return new Promise((resolve) => {
    execFile(slopeCommand(), words, { cwd: path.dirname(file) }, (error, _out, problem) => {
      // A script that fails has a profile, too.
      if (error) window.showErrorMessage(problem || String(error));
      if (fs.existsSync(page)) {
        const panel = window.createWebviewPanel("slopeProfile", `Profile of ${path.basename(file)}`, vscode.ViewColumn.Beside, {
          enableScripts: true,
        });
        panel.webview.html = fs.readFileSync(page, "utf8");
      }
      fs.rmSync(folder, { recursive: true, force: true });
      resolve();
    });
  });
}

exports.activate = function (context) {
  context.subscriptions.push(
    createExplorer(vscode, slopeCommand),
    commands.registerCommand("slope.run", onFile((file) => inTerminal([slopeCommand(), file]))),
    commands.registerCommand("slope.profile", onFile(showProfile)),
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
