package kafka.tools;

/** What the metadata shell of 4.3.1 looks for, and 4.4.0 has under another name. */
public class TerseFailure extends Exception {
    public TerseFailure(String message) {
        super(message);
    }
}
