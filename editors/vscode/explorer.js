// The test explorer: the test sets of files, and what `slope FILE` says of them.
const { execFile } = require("child_process");
const path = require("path");

// `@testset "name"` with its lines, in order; `depth` counts the sets that it stands in, as indentation shows.
function testSets(text) {
  const found = [];
  const open = []; // indentation of the sets around
  text.split(/\r?\n/).forEach((line, number) => {
    const set = /^(\s*)@testset\s+(?:verbose\s*=\s*\w+\s+)?"((?:[^"\\$]|\\.)*)"/.exec(line);
    if (!set) return;
    const indentation = set[1].length;
    while (open.length > 0 && open[open.length - 1] >= indentation) open.pop();
    found.push({ name: set[2], line: number, depth: open.length });
    open.push(indentation);
  });
  return found;
}

// What a run printed: rows of the tables as { name, depth, failed }, in order, and failures with their places.
function outcomes(output) {
  const rows = [];
  const failures = [];
  let columns = [];
  const lines = output.split(/\r?\n/);
  lines.forEach((line, i) => {
    const failure = /^(.*): (Test Failed|Error During Test) at (.*):(\d+)$/.exec(line);
    if (failure) {
      const message = [failure[2]];
      for (let k = i + 1; k < lines.length && /^\s/.test(lines[k]); k++) message.push(lines[k].trim());
      failures.push({ set: failure[1], file: failure[3], line: Number(failure[4]) - 1, message: message.join("\n") });
      return;
    }
    const head = /^Test Summary:\s*\|(.*)$/.exec(line);
    if (head) {
      columns = head[1].trim().split(/\s+/);
      return;
    }
    const row = /^( *)(.*?)\s*\|((?:\s+\d+)+)\s*$/.exec(line);
    if (!row || columns.length === 0) {
      columns = [];
      return;
    }
    // A number stands below each column's end; without one, the column is empty. What went wrong has its own columns.
    const bar = line.indexOf("|");
    const headLine = lines.slice(0, i).reverse().find((each) => each.startsWith("Test Summary:"));
    const failed = ["Fail", "Error"].some((name) => {
      const at = headLine.indexOf(name, bar);
      return at >= 0 && line.slice(at, at + name.length).trim() !== "" && Number(line.slice(at, at + name.length)) > 0;
    });
    rows.push({ name: row[2], depth: row[1].length / 2, failed });
  });
  return { rows, failures };
}

// The state of each set of a file after a run: "passed", "failed", or "skipped" where the run did not come to it. A set
// inside one that passed has no row of its own.
function states(sets, result) {
  let next = 0;
  const around = [];
  return sets.map((set) => {
    around.length = set.depth;
    const at = result.rows.findIndex((row, i) => i >= next && row.name === set.name && row.depth === set.depth);
    const outside = around[around.length - 1];
    let state = outside === "passed" ? "passed" : "skipped";
    if (at >= 0) {
      state = result.rows[at].failed ? "failed" : "passed";
      next = at + 1;
    }
    around.push(state);
    return state;
  });
}

// Makes the controller. `vscode` is the editor's module.
function createExplorer(vscode, slopeCommand) {
  const controller = vscode.tests.createTestController("slope", "Slope");

  function read(uri, text) {
    const sets = testSets(text);
    if (sets.length === 0) return controller.items.delete(uri.toString());
    const file = controller.createTestItem(uri.toString(), path.basename(uri.fsPath), uri);
    const around = [file];
    sets.forEach((set, i) => {
      const item = controller.createTestItem(`${uri}#${i}`, set.name, uri);
      item.range = new vscode.Range(set.line, 0, set.line, 0);
      around.length = set.depth + 1;
      around[set.depth].children.add(item);
      around.push(item);
    });
    controller.items.add(file);
  }

  function itemsOf(item) {
    const all = [];
    item.children.forEach((child) => all.push(child, ...itemsOf(child)));
    return all;
  }
  function fileOf(item) {
    return item.parent ? fileOf(item.parent) : item;
  }

  // A file runs as a whole: its test sets use what stands before them.
  async function runFile(run, file, token) {
    const items = itemsOf(file);
    items.forEach((item) => run.started(item));
    const text = (await vscode.workspace.openTextDocument(file.uri)).getText();
    const output = await new Promise((resolve) => {
      const child = execFile(slopeCommand(), [file.uri.fsPath], { cwd: path.dirname(file.uri.fsPath) }, (error, out, err) =>
        resolve({ out, err, failed: Boolean(error) })
      );
      if (token) token.onCancellationRequested(() => child.kill("SIGINT"));
    });
    run.appendOutput((output.out + output.err).replace(/\r?\n/g, "\r\n"));
    const result = outcomes(output.out);
    states(testSets(text), result).forEach((state, i) => {
      const item = items[i];
      if (!item) return;
      if (state !== "failed") return run[state](item);
      const messages = result.failures
        .filter((failure) => failure.set === item.label)
        .map((failure) => {
          const message = new vscode.TestMessage(failure.message);
          message.location = new vscode.Location(vscode.Uri.file(failure.file), new vscode.Position(failure.line, 0));
          return message;
        });
      run.failed(item, messages.length > 0 ? messages : [new vscode.TestMessage("a test inside failed")]);
    });
    if (output.failed && result.rows.every((row) => !row.failed)) {
      run.errored(file, new vscode.TestMessage(output.err || "the file could not be run"));
    }
  }

  controller.createRunProfile(
    "Run",
    vscode.TestRunProfileKind.Run,
    async (request, token) => {
      const run = controller.createTestRun(request);
      const wanted = request.include || [];
      const files = new Set(wanted.map(fileOf));
      if (!request.include) controller.items.forEach((file) => files.add(file));
      for (const file of files) await runFile(run, file, token);
      run.end();
    },
    true
  );

  const look = (document) => {
    if (document.languageId === "slope") read(document.uri, document.getText());
  };
  vscode.workspace.textDocuments.forEach(look);
  const watches = [
    vscode.workspace.onDidOpenTextDocument(look),
    vscode.workspace.onDidSaveTextDocument(look),
  ];
  // Files that are not open.
  vscode.workspace.findFiles("**/test*/**/*.slope", "**/node_modules/**", 1000).then(async (uris) => {
    for (const uri of uris) read(uri, Buffer.from(await vscode.workspace.fs.readFile(uri)).toString("utf8"));
  });
  return { dispose: () => [controller, ...watches].forEach((each) => each.dispose()) };
}

module.exports = { testSets, outcomes, states, createExplorer };
