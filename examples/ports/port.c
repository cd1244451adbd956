/* Mean and last-token pooling for `attnpool check --command ./port` (docs/guides/porting.md).
   Build it with `cc -O2 -o port examples/ports/port.c`.
   `--mistake` divides the sum of the real tokens by the padded length. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  int rank;
  size_t shape[16], count;
  double *data;
} Array;

static char *at; /* where the line is read */

static void fail(const char *words) {
  fprintf(stderr, "port.c: %s before \"%.40s\"\n", words, at);
  exit(1);
}

static char peek(void) {
  while (isspace((unsigned char)*at)) at++;
  return *at;
}

static int accept(char wanted) {
  if (peek() != wanted) return 0;
  at++;
  return 1;
}

static void need(char wanted) {
  if (!accept(wanted)) fail("another character than is needed stands");
}

static void string(char *out, size_t size) { /* names have no escapes */
  size_t length = 0;
  need('"');
  for (; *at && *at != '"'; at++)
    if (length + 1 < size) out[length++] = *at;
  out[length] = 0;
  need('"');
}

static double number(void) { /* strtod reads NaN and Infinity, too */
  int quoted = accept('"');
  char *end;
  double value = strtod(at, &end);
  if (end == at) fail("no number stands");
  at = end;
  if (quoted) need('"');
  return value;
}

static void skip(void) { /* any value */
  char text[8];
  if (peek() == '"') {
    string(text, sizeof text);
  } else if (*at == '{' || *at == '[') {
    int object = *at++ == '{';
    if (!accept(object ? '}' : ']')) {
      do {
        if (object) string(text, sizeof text), need(':');
        skip();
      } while (accept(','));
      need(object ? '}' : ']');
    }
  } else {
    while (*at && !strchr(",]}", *at)) at++;
  }
}

static Array array(void) { /* {"shape": [...], "dtype": "...", "data": [...]}, in this order */
  Array read = {0};
  char key[32];
  read.count = 1;
  need('{');
  do {
    string(key, sizeof key);
    need(':');
    if (!strcmp(key, "shape")) {
      need('[');
      while (!accept(']')) {
        if (read.rank == 16) fail("too many axes");
        read.count *= read.shape[read.rank++] = (size_t)number();
        accept(',');
      }
    } else if (!strcmp(key, "data")) {
      read.data = malloc((read.count + 1) * sizeof *read.data);
      need('[');
      for (size_t i = 0; i < read.count; i++) read.data[i] = number(), accept(',');
      need(']');
    } else {
      skip();
    }
  } while (accept(','));
  need('}');
  if (!read.data) fail("no data");
  return read;
}

static size_t rows_of(const Array *x) { /* the product of the batch axes of x [..., L, d] */
  size_t rows = 1;
  for (int axis = 0; axis < x->rank - 2; axis++) rows *= x->shape[axis];
  return rows;
}

/* x [..., L, d] under a mask [..., L], whose data are NULL without one: result [..., d] */
static void pool(const Array *x, const Array *mask, int last, int mistake, float *result) {
  size_t length = x->shape[x->rank - 2], width = x->shape[x->rank - 1], rows = rows_of(x);
  for (size_t row = 0; row < rows; row++)
    for (size_t c = 0; c < width; c++) {
      double sum = 0, found = 0;
      size_t count = 0;
      for (size_t l = 0; l < length; l++)
        if (!mask->data || mask->data[row * length + l] != 0) {
          found = x->data[(row * length + l) * width + c];
          sum += found;
          count++;
        }
      size_t divisor = mistake ? length : count;
      result[row * width + c] = (float)(last ? found : divisor ? sum / (double)divisor : 0);
    }
}

static void print(const Array *x, const float *result) {
  size_t count = rows_of(x) * x->shape[x->rank - 1];
  printf("\"results\": [{\"shape\": [");
  for (int axis = 0; axis < x->rank - 2; axis++) printf("%zu, ", x->shape[axis]);
  printf("%zu], \"dtype\": \"float32\", \"data\": [", x->shape[x->rank - 1]);
  for (size_t i = 0; i < count; i++) {
    if (i) printf(", ");
    if (isnan(result[i])) printf("\"NaN\"");
    else if (isinf(result[i])) printf(result[i] > 0 ? "\"Infinity\"" : "\"-Infinity\"");
    else printf("%.9g", result[i]);
  }
  printf("]}]");
}

static void call(int mistake) {
  char key[32], function[64] = "";
  double id = 0;
  Array x = {0}, mask = {0};
  need('{');
  do {
    string(key, sizeof key);
    need(':');
    if (!strcmp(key, "id")) {
      id = number();
    } else if (!strcmp(key, "function")) {
      string(function, sizeof function);
    } else if (!strcmp(key, "arguments")) {
      need('{');
      do {
        string(key, sizeof key);
        need(':');
        if (!strcmp(key, "x")) x = array();
        else if (!strcmp(key, "mask")) mask = array();
        else skip();
      } while (accept(','));
      need('}');
    } else {
      skip();
    }
  } while (accept(','));
  printf("{\"id\": %.0f, ", id);
  if (x.rank < 2) {
    printf("\"error\": \"x needs two axes or more\"");
  } else {
    float *result = malloc((rows_of(&x) * x.shape[x.rank - 1] + 1) * sizeof *result);
    pool(&x, &mask, !strcmp(function, "last_pooling"), mistake, result);
    print(&x, result);
    free(result);
  }
  puts("}");
  free(x.data);
  free(mask.data);
}

int main(int count, char **words) {
  int mistake = count > 1 && !strcmp(words[1], "--mistake");
  char *line = NULL;
  size_t size = 0;
  while (getline(&line, &size, stdin) > 0) {
    at = line;
    if (strstr(line, "\"attnpool\""))
      puts("{\"name\": \"port.c\", \"version\": \"1\", \"functions\": [\"mean_pooling\", \"last_pooling\"], "
           "\"dtypes\": [\"float32\"], \"encodings\": [\"data\"], \"mask\": \"boolean\"}");
    else
      call(mistake);
    fflush(stdout);
  }
  free(line);
  return 0;
}
