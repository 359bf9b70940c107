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
__init__() = started[] += 1
end
