module Helper
scaled(x) = 3x
end
