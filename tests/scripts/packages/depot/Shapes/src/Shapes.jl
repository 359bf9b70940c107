__precompile__()
module Shapes
using Helper: scaled
import Helper
export area, gradient
const started = Ref(0)
const folder = @__DIR__
include("more.jl")
area(r) = scaled(r^2)
gradient(x) = "a gradient of its own"
mean_area(xs) = error("no extension")
unused() = ccall(:nothing_here, Cvoid, ())
# A generator sees what stands below it: the definitions of a package come at once.
@generated name_of(x) = QuoteNode(lowered_name(x))
lowered_name(T) = Symbol(lowercase(String(nameof(T))))
__init__() = started[] += 1
end
