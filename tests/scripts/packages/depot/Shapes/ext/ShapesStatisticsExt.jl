module ShapesStatisticsExt
using Shapes, Statistics
Shapes.mean_area(xs::Vector) = mean(map(area, xs))
end
