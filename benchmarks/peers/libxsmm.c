/* LIBXSMM 1.17 behind functions that ctypes can call, on one thread. Built by libxsmm.py. */
#include <libxsmm.h>
#include <stdlib.h>
#include <string.h>

static void *room(size_t bytes) {
  void *p = libxsmm_aligned_malloc(bytes, 2097152);
  if (p) memset(p, 0, bytes);
  return p;
}

const char *xs_version(void) { return LIBXSMM_VERSION; }
const char *xs_target(void) { return libxsmm_get_target_arch(); }

/* A product of matrices up to so small, column major, called so many times. Returns 0 where there is no code for it. */
typedef struct { libxsmm_smmfunction f; } small;
void *xs_small_new(int m, int n, int k) {
  const float one = 1, zero = 0;
  small *s = calloc(1, sizeof *s);
  s->f = libxsmm_smmdispatch(m, n, k, 0, 0, 0, &one, &zero, 0, 0);
  if (s->f) return s;
  free(s);
  return 0;
}
void xs_small_run(small *s, const float *a, const float *b, float *c, long times) {
  for (long i = 0; i < times; i++) s->f(a, b, c);
}
void xs_small_end(small *s) { free(s); }

/* A product of matrices in blocks, column major. It adds to what is there: there is none that sets. */
typedef struct { libxsmm_blocked_gemm_handle *h; size_t bytes; void *a, *b, *c; } gemm;
void xs_gemm_end(gemm *g) {
  libxsmm_free(g->a);
  libxsmm_free(g->b);
  libxsmm_free(g->c);
  if (g->h) libxsmm_blocked_gemm_handle_destroy(g->h);
  free(g);
}
void *xs_gemm_new(int m, int n, int k, int bm, int bn, int bk, const float *a, const float *b) {
  const float one = 1;
  const int whole = 1;
  gemm *g = calloc(1, sizeof *g);
  g->h = libxsmm_blocked_gemm_handle_create(1, LIBXSMM_GEMM_PRECISION_F32, LIBXSMM_GEMM_PRECISION_F32, m, n, k, &bm,
                                            &bn, &bk, &whole, &whole, &whole, &whole, &one, &one, 0,
                                            0, 0);
  g->a = room(4ul * m * k);
  g->b = room(4ul * k * n);
  g->c = room(g->bytes = 4ul * m * n);
  if (g->h && g->a && g->b && g->c && !libxsmm_blocked_gemm_copyin_a(g->h, a, 0, g->a) &&
      !libxsmm_blocked_gemm_copyin_b(g->h, b, 0, g->b)) return g;
  xs_gemm_end(g);
  return 0;
}
void xs_gemm_run(gemm *g) { libxsmm_blocked_gemm_st(g->h, g->a, g->b, g->c, 0, 0); }
void xs_gemm_out(gemm *g, float *c) {
  memset(g->c, 0, g->bytes);
  xs_gemm_run(g);
  libxsmm_blocked_gemm_copyout_c(g->h, g->c, 0, c);
}

/* A convolution of f32 in LIBXSMM's layout in blocks; images NCHW and weights KCRS are laid out beforehand. */
typedef struct { libxsmm_dnn_layer *l; libxsmm_dnn_tensor *t[3]; void *p[4]; } convolution;
static const libxsmm_dnn_tensor_type TYPE[] = {LIBXSMM_DNN_REGULAR_INPUT, LIBXSMM_DNN_REGULAR_FILTER,
                                               LIBXSMM_DNN_REGULAR_OUTPUT};
void xs_convolution_end(convolution *v) {
  for (int i = 0; i < 3; i++)
    if (v->t[i]) libxsmm_dnn_release_tensor(v->l, TYPE[i]), libxsmm_dnn_destroy_tensor(v->t[i]);
  if (v->p[3]) libxsmm_dnn_release_scratch(v->l, LIBXSMM_DNN_COMPUTE_KIND_FWD);
  if (v->l) libxsmm_dnn_destroy_conv_layer(v->l);
  for (int i = 0; i < 4; i++) libxsmm_free(v->p[i]);
  free(v);
}
static int bound(convolution *v, int i) {
  libxsmm_dnn_err_t e;
  libxsmm_dnn_tensor_datalayout *layout = libxsmm_dnn_create_tensor_datalayout(v->l, TYPE[i], &e);
  if (!layout) return 0;
  v->p[i] = room(libxsmm_dnn_get_tensor_size(layout, &e));
  v->t[i] = libxsmm_dnn_link_tensor(layout, v->p[i], &e);
  libxsmm_dnn_destroy_tensor_datalayout(layout);
  return v->p[i] && v->t[i] && libxsmm_dnn_bind_tensor(v->l, v->t[i], TYPE[i]) == LIBXSMM_DNN_SUCCESS;
}
/* ``d``: images, channels, height, width, filters, rows, columns, stride, padding, and whether x has it already */
void *xs_convolution_new(const int *d, const float *x, const float *w) {
  libxsmm_dnn_err_t e;
  libxsmm_dnn_conv_desc s;
  convolution *v = calloc(1, sizeof *v);
  memset(&s, 0, sizeof s);
  s.N = d[0], s.C = d[1], s.H = d[2], s.W = d[3], s.K = d[4], s.R = d[5], s.S = d[6], s.u = s.v = d[7];
  s.pad_h = s.pad_w = d[8];
  s.pad_h_in = s.pad_w_in = d[9] ? d[8] : 0;
  s.threads = 1;
  s.datatype_in = s.datatype_out = LIBXSMM_DNN_DATATYPE_F32;
  s.buffer_format = s.filter_format = LIBXSMM_DNN_TENSOR_FORMAT_LIBXSMM;
  s.algo = LIBXSMM_DNN_CONV_ALGO_AUTO;
  s.options = LIBXSMM_DNN_CONV_OPTION_OVERWRITE;
  s.fuse_ops = LIBXSMM_DNN_CONV_FUSE_NONE;
  v->l = libxsmm_dnn_create_conv_layer(s, &e);
  if (v->l && e == LIBXSMM_DNN_SUCCESS && bound(v, 0) && bound(v, 1) && bound(v, 2) &&
      !libxsmm_dnn_copyin_tensor(v->t[0], x, LIBXSMM_DNN_TENSOR_FORMAT_NCHW) &&
      !libxsmm_dnn_copyin_tensor(v->t[1], w, LIBXSMM_DNN_TENSOR_FORMAT_KCRS)) {
    size_t bytes = libxsmm_dnn_get_scratch_size(v->l, LIBXSMM_DNN_COMPUTE_KIND_FWD, &e);
    if (!bytes) return v;
    v->p[3] = room(bytes);
    if (v->p[3] && !libxsmm_dnn_bind_scratch(v->l, LIBXSMM_DNN_COMPUTE_KIND_FWD, v->p[3])) return v;
  }
  xs_convolution_end(v);
  return 0;
}
void xs_convolution_run(convolution *v) { libxsmm_dnn_execute_st(v->l, LIBXSMM_DNN_COMPUTE_KIND_FWD, 0, 0); }
void xs_convolution_out(convolution *v, float *y) {
  libxsmm_dnn_copyout_tensor(v->t[2], y, LIBXSMM_DNN_TENSOR_FORMAT_NCHW);
}
