module Circle
using Circle2
end
