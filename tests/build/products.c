/* Calls what `slope build products.slope` made, with a BLAS of its own, and prints what the script prints. */
#include "products.h"

#include <stdio.h>

static char work[1 << 16];
static int wrong;

static void check(int condition, const char* what) {
  if (condition) return;
  fprintf(stderr, "wrong: %s\n", what);
  wrong = 1;
}

static void show(const double* x, int count) {
  for (int i = 0; i < count; ++i) printf("%.17g\n", x[i]);
}

static double element(const char* transposed, const double* a, int rows, int i, int j) {
  return *transposed == 'T' ? a[j + i * rows] : a[i + j * rows];
}

void dgemv_(const char* transposed, const int* m, const int* n, const double* alpha, const double* a, const int* lda,
            const double* x, const int* incx, const double* beta, double* y, const int* incy) {
  check(*incx == 1 && *incy == 1 && *lda >= *m && *m > 0 && *n > 0, "arguments of dgemv_");
  const int rows = *transposed == 'T' ? *n : *m, columns = *transposed == 'T' ? *m : *n;
  for (int i = 0; i < rows; ++i) {
    double sum = 0;
    for (int j = 0; j < columns; ++j) sum += element(transposed, a, *lda, i, j) * x[j];
    y[i] = *alpha * sum + (*beta == 0 ? 0 : *beta * y[i]);
  }
}

void dgemm_(const char* ta, const char* tb, const int* m, const int* n, const int* k, const double* alpha,
            const double* a, const int* lda, const double* b, const int* ldb, const double* beta, double* c,
            const int* ldc) {
  check(*ldc >= *m, "arguments of dgemm_");
  for (int j = 0; j < *n; ++j)
    for (int i = 0; i < *m; ++i) {
      double sum = 0;
      for (int l = 0; l < *k; ++l) sum += element(ta, a, *lda, i, l) * element(tb, b, *ldb, l, j);
      c[i + j * *ldc] = *alpha * sum + (*beta == 0 ? 0 : *beta * c[i + j * *ldc]);
    }
}

int main(void) {
  const double w[3] = {0.3, 1.7, -0.4}, A[6] = {1.0, 0.1, 2.0, 0.2, 0.5, 0.3}, B[4] = {0.5, 2.0, -1.0, 0.25};
  double value, g[3], G[6], H[6];
  check(loss_gradient(w, 3, A, 2, 3, g, 3, G, 2, 3, &value, work, sizeof work) == 0, "loss");
  show(&value, 1);
  show(g, 3);
  show(G, 6);
  check(network_gradient(w, 3, A, 2, 3, B, 2, 2, g, 3, G, 2, 3, H, 2, 2, &value, work, sizeof work) == 0, "network");
  show(&value, 1);
  show(g, 3);
  show(G, 6);
  show(H, 4);
  check(square_gradient(A, 2, 3, A, 2, 3, G, 2, 3, H, 2, 3, &value, work, sizeof work) == 0, "square");
  show(&value, 1);
  show(G, 6);
  show(H, 6);
  /* What is told to be enough is enough, and not much more than is needed. */
  int64_t told = loss_work_size(3, 2, 3);
  check(told <= (int64_t)sizeof work && loss(w, 3, A, 2, 3, &value, work, told) == 0, "loss_work_size");
  check(PRODUCTS_KIND(loss(w, 3, A, 2, 3, &value, work, told / 2)) == PRODUCTS_WORK, "half of loss_work_size");
  told = loss_gradient_work_size(3, 2, 3, 3, 2, 3);
  check(told <= (int64_t)sizeof work && loss_gradient(w, 3, A, 2, 3, g, 3, G, 2, 3, &value, work, told) == 0,
        "loss_gradient_work_size");
  check(loss_work_size(0, 1000, 0) >= 8000, "loss_work_size of many rows");

  check(PRODUCTS_KIND(loss(w, 2, A, 2, 3, &value, work, sizeof work)) != 0, "sizes that do not fit");
  check(loss(w, 0, A, 2, 0, &value, work, sizeof work) == 0 && value == 2, "an empty vector");
  return wrong;
}
