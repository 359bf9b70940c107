"""Runs the notebook of examples/tutorial.slope, and a notebook of what kernels are asked, by nbclient and jupyter_client.

    notebook.py SLOPE

Exit status 77, with the reason, where these packages are not installed: the test counts as skipped.
"""
import os
import queue
import re
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SKIPPED = 77
PATIENCE = 20  # seconds; nothing here takes one


class Checks:
    def __init__(self):
        self.passed = self.failed = 0

    def __call__(self, holds, what, found=""):
        if holds:
            self.passed += 1
        else:
            self.failed += 1
            print("FAILED:", what, repr(found) if found != "" else "")


check = Checks()


def slope(*arguments):
    return subprocess.run([SLOPE, *arguments], check=True, capture_output=True, text=True).stdout


def tutorial(folder):
    """The tutorial as a notebook prints what the script prints."""
    import nbclient
    import nbformat

    script = os.path.join(TOP, "examples", "tutorial.slope")
    path = os.path.join(folder, "tutorial.ipynb")
    slope("notebook", script, "-o", path)
    book = nbformat.read(path, as_version=4)
    nbformat.validate(book)
    check({cell.cell_type for cell in book.cells} == {"code", "markdown"}, "cells of code and of text")
    nbclient.NotebookClient(book, timeout=PATIENCE, kernel_name="slope").execute()
    outputs = [output for cell in book.cells if cell.cell_type == "code" for output in cell.outputs]
    printed = "".join(output.text for output in outputs if output.output_type == "stream")
    check(printed == slope(script), "the notebook prints what the script prints", printed)
    forms = [output.data for output in outputs if output.output_type == "execute_result"]
    check(any("<polyline" in form.get("image/svg+xml", "") for form in forms), "the plot is a picture")
    check(any(form["text/plain"] == "2-element Vector{Float64}:\n 0.8\n 1.4" for form in forms), "a vector as text")
    back = os.path.join(folder, "back.slope")
    slope("notebook", path, "-o", back)
    check(open(back).read() == open(script).read(), "a script made into a notebook and back is the same")


class Kernel:
    """Cells that run one after the other, and what they gave."""

    def __init__(self):
        from jupyter_client.manager import start_new_kernel

        self.manager, self.client = start_new_kernel(kernel_name="slope", startup_timeout=PATIENCE)

    def start(self, code, **options):
        return self.client.execute(code, **options)

    def messages(self, request):
        """Those of one request, until the kernel is idle."""
        while True:
            message = self.client.get_iopub_msg(timeout=PATIENCE)
            if message["parent_header"].get("msg_id") != request:
                continue
            if message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
                return
            yield message

    def reply(self, request):
        while True:
            message = self.client.get_shell_msg(timeout=PATIENCE)
            if message["parent_header"].get("msg_id") == request:
                return message["content"]

    def run(self, code, **options):
        request = self.start(code, **options)
        messages = list(self.messages(request))
        return messages, self.reply(request)

    def printed(self, code):
        messages, _ = self.run(code)
        return [(m["content"]["name"], m["content"]["text"]) for m in messages if m["msg_type"] == "stream"]

    def result(self, code):
        messages, _ = self.run(code)
        found = [m["content"]["data"] for m in messages if m["msg_type"] == "execute_result"]
        return found[0] if found else None

    def interrupt_when(self, request, is_ready):
        """Interrupts the cell once one of its messages says that it runs; its reply."""
        for message in self.messages(request):
            if is_ready(message):
                self.manager.interrupt_kernel()
        return self.reply(request)

    def end(self):
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)


def values_and_streams(kernel):
    check(kernel.result("1 + 1") == {"text/plain": "2"}, "the value of a cell")
    check(kernel.result("ans + 40") == {"text/plain": "42"}, "`ans`")
    check(kernel.result("v = [1, 2];") is None, "`;` hides the value")
    check(kernel.result("nothing") is None, "`nothing` is not shown")
    check(kernel.printed('print("a"); print("b")') == [("stdout", "ab")], "what is printed together is one message")
    found = kernel.printed('println("out"); println(stderr, "err"); println("again")')
    check(found == [("stdout", "out\n"), ("stderr", "err\n"), ("stdout", "again\n")], "streams in their order", found)
    check(kernel.printed(";echo from the shell") == [("stdout", "from the shell\n")], "a command of the shell")
    messages, _ = kernel.run("display(1); println(2); display(3); 4")
    kinds = [m["msg_type"] for m in messages if m["msg_type"] not in ("status", "execute_input")]
    check(kinds == ["display_data", "stream", "display_data", "execute_result"], "several outputs in order", kinds)
    found = kernel.result('struct Bold; text::String; end\n'
                          'Base.show(io::IO, ::MIME"text/html", b::Bold) = print(io, "<b>", b.text, "</b>")\nBold("x")')
    check(found["text/html"] == "<b>x</b>" and "Bold" in found["text/plain"], "a form that the notebook's author adds")
    found = kernel.result("@inspect sum([1.0])")
    check("<iframe" in found["text/html"] and "Chrome" not in found["text/plain"], "the inspector's page")
    found = kernel.result('using DataFrames\nDataFrame(a=[1, 2], b=["x", "<y>"])')
    check("<td>&lt;y&gt;</td>" in found["text/html"], "a table", found["text/html"])
    found = kernel.printed("@progress for i in 1:4; sleep(0.06); end")
    check(any(stream == "stderr" and "4/4" in text for stream, text in found), "progress", found)
    _, reply = kernel.run("1", user_expressions={"x": "v[2] + 1", "y": "nowhere"})
    expressions = reply["user_expressions"]
    check(expressions["x"]["data"]["text/plain"] == "3" and expressions["y"]["status"] == "error", "user expressions")
    messages, _ = kernel.run("println(1); 2", silent=True)
    check(all(m["msg_type"] == "status" for m in messages), "a silent cell says nothing")


def errors(kernel):
    messages, reply = kernel.run("f(x) = sqrt(x)\nf(-1.0)")
    trace = "\n".join(reply["traceback"])
    check(reply["status"] == "error" and reply["ename"] == "DomainError", "the kind of an error", reply)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", trace)
    check("\x1b[" in trace and "^" in plain and "In[" in plain, "colours, a caret, the cell's name", trace)
    check([m["content"]["ename"] for m in messages if m["msg_type"] == "error"] == ["DomainError"], "it is shown once")
    _, reply = kernel.run("x = (1")
    check(reply["ename"] == "SyntaxError", "an error of syntax", reply)
    check(kernel.result("1 + 2") == {"text/plain": "3"}, "the session goes on")


def questions(kernel):
    def ask(request):
        return kernel.reply(request)

    found = ask(kernel.client.complete("π = 3; sqr", 10))
    check("sqrt" in found["matches"] and found["cursor_start"] == 7, "names complete", found)
    kernel.run('struct Point; across::Int; up::Int; end\npoint = Point(1, 2)\nd = Dict("key one" => 1)')
    check(ask(kernel.client.complete("point.a"))["matches"] == ["across"], "fields complete")
    check(ask(kernel.client.complete("\\alpha"))["matches"] == ["α"], "LaTeX names become characters")
    check(ask(kernel.client.complete('d["k'))["matches"] == ['key one"]'], "keys complete")

    def described(code, cursor):
        return ask(kernel.client.inspect(code, cursor))["data"].get("text/plain", "")

    check("sine" in described("sin(1.0)", 2), "documentation", described("sin(1.0)", 2))
    check("sin(1.0) :: Float64" in described("sin(1.0)", 2), "the inferred type of a call")
    check("sine" in described("sin(", 4), "the function whose call is open")
    check("point.up :: Int64" in described("point.up", 7), "the inferred type of a field", described("point.up", 7))
    check(not ask(kernel.client.inspect("nowhere", 3))["found"], "a name that is not known")
    for code, status, indent in (("for i in 1:3", "incomplete", "    "), ("1 + 1", "complete", None),
                                 ("x = )", "invalid", None)):
        found = ask(kernel.client.is_complete(code))
        check(found["status"] == status and (indent is None or found["indent"] == indent), "is_complete: " + code, found)
    found = ask(kernel.client.history(hist_access_type="tail", n=1))["history"]
    check(len(found) == 1 and "struct Point" in found[0][2], "history", found)
    _, reply = kernel.run("?sqrt")
    check("root" in reply["payload"][0]["data"]["text/plain"], "`?name`", reply)
    info = ask(kernel.client.kernel_info())
    check(info["language_info"]["file_extension"] == ".slope", "kernel_info", info)


def input_and_interrupts(kernel):
    request = kernel.start('name = readline(); println("hello ", name)', allow_stdin=True)
    kernel.client.get_stdin_msg(timeout=PATIENCE)
    kernel.client.input("you")
    found = [m["content"]["text"] for m in kernel.messages(request) if m["msg_type"] == "stream"]
    check(found == ["hello you\n"], "a cell reads input", found)
    kernel.reply(request)
    _, reply = kernel.run("readline()", allow_stdin=False)
    check(reply["status"] == "error" and "input" in reply["evalue"], "no input where there is none", reply)

    is_stream = lambda message: message["msg_type"] == "stream"
    loop = "function spin(); s = 0.0; while true; s += sin(s); end; s; end\nprintln(1)\nspin()"
    reply = kernel.interrupt_when(kernel.start(loop), is_stream)
    check(reply["ename"] == "InterruptException", "a loop is interrupted", reply)
    check(kernel.result("6 * 7") == {"text/plain": "42"}, "and the session lives")
    request = kernel.start("readline()", allow_stdin=True)
    kernel.client.get_stdin_msg(timeout=PATIENCE)
    kernel.manager.interrupt_kernel()
    list(kernel.messages(request))
    reply = kernel.reply(request)
    check(reply.get("ename") == "InterruptException", "waiting for input is interrupted", reply)
    # LAPACK, which cannot be interrupted and takes a minute or two, goes on by itself until the kernel ends.
    kernel.run("using LinearAlgebra; A = rand(2500, 2500); schur(rand(3, 3));")
    reply = kernel.interrupt_when(kernel.start("println(1); schur(A)"), is_stream)
    check(reply.get("ename") == "InterruptException", "a factorisation is interrupted", reply)
    kernel.manager.interrupt_kernel()  # nothing runs
    check(kernel.result("6 * 7") == {"text/plain": "42"}, "an interrupt of nothing ends nothing")
    request = kernel.start('println("first"); while !isfile(ENV["GO_ON"]); end; println("second")')
    for message in kernel.messages(request):
        if is_stream(message) and "first" in message["content"]["text"]:
            check(True, "what a cell prints comes while it runs")
            open(os.environ["GO_ON"], "w").close()
    reply = kernel.reply(request)
    check(reply["status"] == "ok", "and it goes on", reply)


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(HOME=folder, JUPYTER_DATA_DIR=os.path.join(folder, "data"), JUPYTER_PLATFORM_DIRS="0",
                          JUPYTER_RUNTIME_DIR=os.path.join(folder, "run"), IPYTHONDIR=folder,
                          GO_ON=os.path.join(folder, "go-on"))
        slope("kernel", "--install")
        check(os.path.isfile(os.path.join(folder, "data", "kernels", "slope", "kernel.json")), "--install")
        slope("kernel", "--install", "--prefix", os.path.join(folder, "prefix"))
        check(os.path.isfile(os.path.join(folder, "prefix/share/jupyter/kernels/slope/kernel.json")), "--prefix")
        tutorial(folder)
        kernel = Kernel()
        try:
            values_and_streams(kernel)
            errors(kernel)
            questions(kernel)
            input_and_interrupts(kernel)
        except queue.Empty:
            check(False, "the kernel answers")
        finally:
            kernel.end()
    print(check.passed, "passed,", check.failed, "failed")
    if "SLOPE_TEST_COUNTS" in os.environ:
        with open(os.environ["SLOPE_TEST_COUNTS"], "w") as counts:
            counts.write("%d %d\n" % (check.passed, check.failed))
    return 1 if check.failed else 0


if __name__ == "__main__":
    SLOPE = os.path.abspath(sys.argv[1])
    missing = []
    for package in ("nbclient", "nbformat", "jupyter_client"):
        try:
            __import__(package)
        except ImportError:
            missing.append("python3-" + package.replace("_", "-"))
    if not os.path.exists(os.path.join(os.path.dirname(SLOPE), "slope-kernel")):
        missing.append("xeus-dev, when Slope was built")
    if missing:
        print("SKIPPED: not installed:", ", ".join(missing))
        sys.exit(SKIPPED)
    sys.exit(main())
