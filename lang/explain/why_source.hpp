// What `@why` asks about functions (why.hpp), answered by the pipeline.
#pragma once

#include "lang/explain/why.hpp"
#include "lang/pipeline/pipeline.hpp"

namespace slope::explain {

infer::WhySource why_source(Pipeline& pipeline, Context& ctx);

}  // namespace slope::explain
