// Takes a batch apart: finds its records, word by word, and says which bytes of which line make the beats of frames.
//
// Records stand at multiples of 8 bytes behind the header: a 16-bit length, so many bytes, zeros to the next multiple.
// A batch goes through here twice: first it is only looked at (`scan`), so that no frame of a malformed batch leaves;
// then its frames are made. Records too short for a frame are skipped and counted at the first look.
//
// Guarantees
//   - A scan ends with one outcome: bad if a record claims more than is left, or more than a frame may have.
//   - Beats lie inside the message: they are those of records that a scan has found good.
//   - The last line of a message is let go in a cycle of its own, without a beat.
// Two cycles a record and one a beat or line. Twin: nic/model/src/mmio/message.rs (check_batch, BatchWalk).

`default_nettype none

module batch_walker (
  input  logic         clk_i,
  input  logic         rst_ni,
  input  logic [13:0]  max_frame_bytes_i,

  // A line of a batch stands here; `step` when what is said of it can be done.
  input  logic         line_valid_i,
  input  logic         line_first_i,
  input  logic         line_last_i,
  input  logic         line_scan_i,
  input  logic [23:0]  line_bytes_i,
  input  logic [511:0] line_data_i,
  input  logic         step_i,
  // Whether the line that comes when this one is done with is the message's last.
  input  logic         next_last_i,

  // A register: the line is done with in this cycle, and not the last, if it is stepped. It may be missing.
  output logic         goes_on_o,
  // The line is done with, in this cycle; a beat is made of it, from byte 2 of a word on; it ends a frame; it is the
  // end of the message.
  output logic         advance_o,
  output logic         beat_valid_o,
  output logic [2:0]   beat_word_o,
  output logic [6:0]   beat_bytes_o,
  output logic         beat_last_o,
  output logic         ends_message_o,

  // The outcome of a scan.
  output logic         outcome_valid_o,
  output logic         outcome_bad_o,
  output logic         count_runts_o
);

  typedef enum logic [2:0] {Begin, Head, Check, Walk, Emit, Skip} state_e;
  state_e      state_q, state_d;
  // Where in the line, words of the record still to be walked over, bytes of message and frame still to come.
  logic [4:0]  word_q, word_d;
  // The word once more, for all bits that are chosen by it: inverted, or it would be made one register with the other.
  logic [2:0]  choice_n_q;
  logic [13:0] walk_q, walk_d;
  logic [23:0] left_q, left_d;
  logic [15:0] bytes_q, bytes_d;
  logic        bad_q, bad_d;
  // Nothing of the message is still to come.
  logic        over_q, over_d;
  // What decides whether the line is done with, found a cycle ahead, for all stages before this one wait for it: the
  // record ends in this line; the frame does in this beat, and the beat reaches into the next line.
  logic        stays_q, stays_d, last_q, last_d, spills_q, spills_d;

  logic [15:0] prefix;
  logic [23:0] record_bytes;
  logic [13:0] record_words;
  logic [4:0]  after_beat;
  logic [4:0]  words_here;
  logic        is_beyond;
  logic        is_bad, is_runt;

  // Whether the line is done with in the next cycle. Where that is known late it is not told, which costs a cycle;
  // behind a record that turns out bad lines are let go, whatever is said here.
  logic        goes_on_d;
  always_comb begin
    unique case (state_q)
      Head:    goes_on_d = over_q;
      Check:   goes_on_d = (line_scan_i || is_runt) ? !stays_d : !last_d || spills_d;
      Walk:    goes_on_d = (stays_q || line_last_i) ? !over_q && word_d[3] : !stays_d;
      Emit:    goes_on_d = last_q ? !over_q && word_d[3] : !last_d || spills_q;
      Skip:    goes_on_d = !line_last_i;
      default: goes_on_d = 1'b0;
    endcase
    if (advance_o ? next_last_i : line_last_i) goes_on_d = 1'b0;
  end

  assign prefix       = line_data_i[64 * beat_word_o +: 16];
  // With its length and padding a record takes (bytes + 9) / 8 words.
  assign record_words = 14'((17'(bytes_q) + 17'd9) >> 3);
  assign record_bytes = {7'd0, record_words, 3'd0};
  assign is_bad       = 24'(bytes_q) + 24'd2 > left_q || bytes_q > 16'(max_frame_bytes_i);
  assign is_runt      = bytes_q < 16'(nic_pkg::MinFrameBytes);
  assign after_beat   = word_q + 5'((8'(bytes_q[6:0]) + 8'd9) >> 3);
  assign words_here   = 5'd8 - word_q;
  // Bytes and padding of what is left, and 2 bytes of length, reach the line's end.
  assign is_beyond    = 8'(bytes_q[5:0]) + {2'b00, word_q[2:0], 3'd0} >= 8'd55;

  assign beat_word_o  = ~choice_n_q;
  assign beat_last_o  = last_q;
  assign beat_bytes_o = beat_last_o ? bytes_q[6:0] : 7'd64;
  assign outcome_bad_o = bad_q;

  always_comb begin
    state_d = state_q;
    word_d  = word_q;
    walk_d  = walk_q;
    left_d  = left_q;
    bytes_d = bytes_q;
    bad_d   = bad_q;
    over_d  = over_q;
    stays_d  = stays_q;
    last_d   = last_q;
    spills_d = spills_q;
    advance_o       = 1'b0;
    beat_valid_o    = 1'b0;
    ends_message_o  = 1'b0;
    outcome_valid_o = 1'b0;
    count_runts_o   = 1'b0;

    unique case (state_q)
      Begin: begin
        word_d = 5'd1;
        left_d = line_bytes_i;
        bad_d  = 1'b0;
        over_d = line_bytes_i == '0;
        if (line_valid_i && line_first_i) state_d = Head;
      end

      Head: begin
        bytes_d = prefix;
        if (over_q) begin
          state_d = Skip;
        end else if (word_q[3]) begin
          advance_o = 1'b1;
          word_d    = word_q - 5'd8;
        end else begin
          state_d = Check;
        end
      end

      Check: begin
        walk_d = record_words;
        over_d = record_bytes >= left_q;
        left_d = left_q - record_bytes;
        stays_d  = bytes_q[15:6] == '0 && !is_beyond;
        last_d   = bytes_q <= 16'd64;
        spills_d = bytes_q[5:0] == '0 || is_beyond;
        if (is_bad) begin
          bad_d   = 1'b1;
          state_d = Skip;
        end else begin
          state_d       = (line_scan_i || is_runt) ? Walk : Emit;
          count_runts_o = line_scan_i && is_runt && step_i;
        end
      end

      Walk: begin
        if (stays_q || line_last_i) begin
          word_d  = word_q + walk_q[4:0];
          state_d = Head;
        end else begin
          advance_o = 1'b1;
          walk_d    = walk_q - 14'(words_here);
          word_d    = '0;
          stays_d   = walk_q < 14'(words_here) + 14'd8;
          if (walk_q == 14'(words_here)) state_d = Head;
        end
      end

      Emit: begin
        beat_valid_o = 1'b1;
        bytes_d      = bytes_q - 16'd64;
        last_d       = bytes_q <= 16'd128;
        if (last_q) begin
          state_d   = Head;
          word_d    = after_beat;
          if (spills_q && !line_last_i) begin
            advance_o = 1'b1;
            word_d    = after_beat - 5'd8;
          end
        end else begin
          advance_o = 1'b1;
        end
      end

      Skip: begin
        advance_o = 1'b1;
        if (line_last_i) begin
          ends_message_o  = !line_scan_i;
          outcome_valid_o = line_scan_i;
          state_d         = Begin;
        end
      end

      default: state_d = Begin;
    endcase
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q   <= Begin;
      goes_on_o <= 1'b0;
    end else if (line_valid_i && step_i) begin
      state_q   <= state_d;
      goes_on_o <= goes_on_d;
    end
    if (line_valid_i && step_i) begin
      word_q  <= word_d;
      choice_n_q <= ~word_d[2:0];
      walk_q  <= walk_d;
      left_q  <= left_d;
      bytes_q <= bytes_d;
      bad_q   <= bad_d;
      over_q  <= over_d;
      stays_q  <= stays_d;
      last_q   <= last_d;
      spills_q <= spills_d;
    end
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni && line_valid_i) begin
      a_no_step_over_the_end : assert (!(advance_o && line_last_i && state_q != Skip));
      a_going_on_is_true     : assert (!goes_on_o || (advance_o && !line_last_i));
      a_stays_is_told        : assert (state_q != Walk || stays_q == (walk_q < 14'(words_here)));
      a_last_is_told         : assert (state_q != Emit || last_q == (bytes_q <= 16'd64));
      a_spills_is_told       : assert (state_q != Emit || !last_q || spills_q == (after_beat[4:3] != '0));
      a_frames_were_checked  : assert (!(state_q == Check && is_bad && !line_scan_i));
    end
  end
`endif

endmodule

`default_nettype wire
